
-- An earlier version has a folder where this one has none, or a link where this one has a folder; rpm
-- would refuse to change the one into the other. Files that no package had in a folder are kept
-- beside it, in NAME.rpmmoved.

local function kind(path)
  local found = posix.stat(path)
  return found and found.type
end

-- Whether no link leads from the prefix to the folder of a path.
local function is_reached(path)
  local folder = path:match("^(.*)/")
  while folder and #folder >= #prefix do
    if kind(folder) ~= "directory" then
      return false
    end
    folder = folder:match("^(.*)/")
  end
  return true
end

local function clear(folder, members)
  if kind(folder) ~= "directory" or not is_reached(folder) then
    return
  end
  for _, member in ipairs(members) do
    if is_reached(folder .. "/" .. member) then
      os.remove(folder .. "/" .. member)
    end
  end
  os.remove(folder)
  if kind(folder) == "directory" then
    local kept, number = folder .. ".rpmmoved", 0
    while kind(kept) do
      number = number + 1
      kept = folder .. ".rpmmoved." .. number
    end
    os.rename(folder, kept)
  end
end
{% for folder in folders %}

clear(prefix .. {{ folder.path }}, {
{% for member in folder.members %}
  {{ member }},
{% endfor %}
})
{% endfor %}
{% for link in links %}

if kind(prefix .. {{ link }}) == "link" and is_reached(prefix .. {{ link }}) then
  os.remove(prefix .. {{ link }})
end
{% endfor %}
