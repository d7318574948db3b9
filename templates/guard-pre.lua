
-- A link in the prefix would lead these files into another place, possibly over those of another
-- vendor. Folders of the system may be links, such as /opt on a system that is an image.
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
