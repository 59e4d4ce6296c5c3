#!/bin/sh
# sandbox.sh DIR PROGRAM [ARGUMENT]...
#
# Runs a program that nobody trusts. It sees the system's programs and libraries, read-only, the folder of PROGRAM as
# /program, read-only, and DIR as /case. It has no network, no other process and no rights, and its files end with it.
# Needs unshare, setpriv and mount (util-linux), and a system where users may make namespaces.
set -eu
[ "${SANDBOX_INSIDE:-}" ] || SANDBOX_INSIDE=1 exec unshare --user --map-root-user --mount --pid --fork --kill-child \
    --net --ipc --uts -- sh "$0" "$@"

dir=$1 folder=$(dirname "$(realpath "$2")") name=$(basename "$2")
shift 2
root=/mnt
mount -t tmpfs none "$root"
mkdir "$root/case" "$root/program" "$root/proc" "$root/dev" "$root/tmp"
bind() { # SOURCE TARGET: read-only
    mount --rbind "$1" "$2"
    mount -o remount,bind,ro "$2"
}
for each in /bin /sbin /lib /lib64 /usr; do
    if [ -L "$each" ]; then
        cp -P "$each" "$root$each"
    elif [ -d "$each" ]; then
        mkdir "$root$each"
        bind "$each" "$root$each"
    fi
done
touch "$root/dev/null"
mount --bind /dev/null "$root/dev/null"
mount --bind "$dir" "$root/case"
bind "$folder" "$root/program"
mount -t proc none "$root/proc"
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp chroot "$root" \
    setpriv --no-new-privs --bounding-set=-all --inh-caps=-all -- sh -c 'cd /tmp && exec "/program/$0" "$@"' "$name" "$@"
