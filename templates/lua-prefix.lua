local prefix = {{ prefix }}
{% if is_moved %}

-- The relocated prefix. rpm 4.18 and later pass it to every phase except %pretrans; otherwise it is in
-- the loader's file, once the common package is installed.
local moved, libdir = {{ moved }}, {{ libdir }}
local loader = not RPM_INSTALL_PREFIX and io.open({{ file }})
if RPM_INSTALL_PREFIX then
  prefix = RPM_INSTALL_PREFIX[1] or prefix
elseif loader then
  local first, folder = loader:read("*l", "*l")
  loader:close()
  if folder and first == moved .. folder and folder:sub(-#libdir) == libdir then
    prefix = folder:sub(1, -#libdir - 1)
  end
end
{% endif %}
