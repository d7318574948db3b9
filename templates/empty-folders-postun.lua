
-- Folders above the prefix belong to no package, because a moved prefix has others above it. Empty
-- ones go, as they do with dpkg.
if prefix == {{ prefix }} then
{% for folder in folders %}
  posix.rmdir({{ folder }})
{% endfor %}
end
