
-- An earlier version has a folder where this one has something else, or a link where this one has a
-- folder; rpm cannot replace one by the other. Files in the folder that no package owned are moved to
-- NAME.rpmmoved.

local function kind(path)
  local found = posix.stat(path)
  return found and found.type
end

-- Whether no folder from the prefix to a path is a link.
local function has_real_folders(path)
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
  if kind(folder) ~= "directory" or not has_real_folders(folder) then
    return
  end
  for _, member in ipairs(members) do
    if has_real_folders(folder .. "/" .. member) then
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

if kind(prefix .. {{ link }}) == "link" and has_real_folders(prefix .. {{ link }}) then
  os.remove(prefix .. {{ link }})
end
{% endfor %}
