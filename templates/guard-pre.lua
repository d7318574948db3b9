
-- A symbolic link in the prefix would put these files elsewhere, possibly over files of another
-- vendor. System folders may be links, such as /opt on an image-based system.
local system = {
{% for folder in system %}
  [{{ folder }}] = true,
{% endfor %}
}
local path = prefix
while path ~= "" and not system[path] do
  if posix.stat(path, "type") == "link" then
    error({{ package }} .. ": " .. path .. " is a symbolic link, but the prefix has to be a real directory", 0)
  end
  path = path:match("^(.*)/") or ""
end
