# The programs of a page's commands: they work in the folder $ROOT, and do what they would ask a person about.
sudo() {
    program=$1
    shift
    case $program in
    curl) curl "$1" "$ROOT$2" "$3" ;;
    apt) chroot "$ROOT" apt -y "$@" ;;
    dnf) dnf --installroot="$ROOT" --setopt=reposdir="$ROOT/etc/yum.repos.d" --releasever=1 -y "$@" ;;
    rpm) rpm --root="$ROOT" "$@" ;;
    zypper) zypper --root "$ROOT" --non-interactive "$@" ;;
    *) return 1 ;;
    esac
}

pip() {
    shift
    $PIP_INSTALL "$@"
}
