#!/usr/bin/env bash
# rpm 4.18.0 of Debian 12, and %pretrans of a package that is installed in another place by --prefix.
#
# Packages of GPU libraries are often relocatable. rpm tells scriptlets the chosen place: Lua in RPM_INSTALL_PREFIX[1],
# a shell in $RPM_INSTALL_PREFIX. One would expect the same in each scriptlet. %pre, %post and %posttrans get it,
# %pretrans gets nothing in either language.
#
# An upgrade replaces a directory by a symbolic link. rpm cannot do that, so Fedora's guidelines have a guard for
# %pretrans that renames the directory first. It works in the default place. With --prefix it looks in the default place
# all the same: the upgrade ends with 2 over a conflict of the package with its own old version, and a tree in the
# default place, which nobody named and rpm does not own, loses its directory. The same guard in %pre knows the place,
# but rpm finds the conflict before %pre runs.
#
# Needs Debian 12's apt and dpkg-deb, and a network. Exits with 1 if rpm behaves otherwise.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
version=4.18.0+dfsg-1+deb12u1
apt-get download -qq "rpm=$version" "rpm-common=$version" "librpm9=$version" "librpmbuild9=$version" \
  "librpmio9=$version" "librpmsign9=$version" libdw1 libelf1 liblua5.3-0 libmagic1 libmagic-mgc libpopt0 2>/dev/null
for package in *.deb; do dpkg-deb -x "$package" root; done
export PATH="$folder/root/usr/bin:$PATH" LC_ALL=C HOME="$folder" MAGIC="$folder/root/usr/lib/file/magic.mgc"
export LD_LIBRARY_PATH="$folder/root/usr/lib/x86_64-linux-gnu" RPM_CONFIGDIR="$folder/root/usr/lib/rpm"

default=$folder/opt/demo moved=$folder/srv/demo
make() { # a package of this version, whose path `data` is made by this command, with scriptlets from standard input
  cat >demo.spec <<SPEC
Name: demo
Version: $1
Release: 1
Summary: one
License: MIT
BuildArch: noarch
AutoReqProv: no
Prefix: $default
%description
one
%install
mkdir -p %{buildroot}$default/share
cd %{buildroot}$default
$2
%files
$default
$(cat)
SPEC
  rpmbuild -bb --define "_topdir $folder/build" --define "_rpmdir $folder" --define '_rpmfilename %{VERSION}.rpm' \
    demo.spec >words 2>&1 || { cat words; exit 1; }
}
database() { rpm --dbpath="$folder/database" --force-debian --nodeps "$@" 2>&1 | sed "s|$folder||; s/^\t/  /"; }
place() { # what each scriptlet of a package in Lua and of one in shell is told
  local scriptlet
  for scriptlet in pretrans pre post posttrans; do
    printf '%%%s -p <lua>\nprint("  %s: " .. (RPM_INSTALL_PREFIX and RPM_INSTALL_PREFIX[1] or "unset"))\n' \
      $scriptlet $scriptlet
  done | make lua 'touch data'
  for scriptlet in pretrans pre post posttrans; do
    printf "%%%s\necho \"  %s: \${RPM_INSTALL_PREFIX-unset}\"\n" $scriptlet $scriptlet
  done | make shell 'touch data'
  for scriptlet in lua shell; do
    rm -rf database srv
    echo "$scriptlet:"
    database --install --prefix="$moved" $scriptlet.rpm
  done
}
guard() { # the guard of Fedora's guidelines in this scriptlet, below this Lua expression
  cat <<LUA
%$1 -p <lua>
path = ($2) .. "/data"
st = posix.stat(path)
if st and st.type == "directory" then os.rename(path, path .. ".rpmmoved") end
LUA
}
try() { # an upgrade from version 1 to this one in this place, while a tree is in the default place
  local ended=0
  rm -rf opt srv database
  mkdir -p "$default/data" srv
  database --install --prefix="$2" 1.rpm
  database --upgrade --prefix="$2" "$1.rpm" >words || ended=$?
  echo "$1 in ${2#"$folder"}: rpm ended with $ended"
  [ "$ended" = 0 ] || cat words
  find opt srv -name 'data*' -printf '  /%p %y\n' | sort
}
make 1 'mkdir data && touch data/file' </dev/null
guard pretrans "\"$default\"" | make 2.pretrans 'ln -s share data'
guard pre "RPM_INSTALL_PREFIX and RPM_INSTALL_PREFIX[1] or \"$default\"" | make 2.pre 'ln -s share data'
{ place
  try 2.pretrans "$default"
  try 2.pretrans "$moved"
  try 2.pre "$moved"; } | tee result
diff result - <<'RESULT'
lua:
  pretrans: unset
  pre: /srv/demo
  post: /srv/demo
  posttrans: /srv/demo
shell:
  pretrans: unset
  pre: /srv/demo
  post: /srv/demo
  posttrans: /srv/demo
2.pretrans in /opt/demo: rpm ended with 0
  /opt/demo/data l
  /opt/demo/data.rpmmoved d
2.pretrans in /srv/demo: rpm ended with 2
  file /srv/demo/data from install of demo-2.pretrans-1.noarch conflicts with file from package demo-1-1.noarch
  /opt/demo/data.rpmmoved d
  /srv/demo/data d
2.pre in /srv/demo: rpm ended with 2
  file /srv/demo/data from install of demo-2.pre-1.noarch conflicts with file from package demo-1-1.noarch
  /opt/demo/data d
  /srv/demo/data d
RESULT
