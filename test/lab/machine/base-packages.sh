#!/bin/sh
# Run by mmdebstrap with the finished root: adds what is taken out of packages without being installed, a kernel (which
# would bring the tools that make an initramfs) and a containerd of another release.
set -eu
root=$1
packages=$root/var/cache/lab
mkdir -p "$packages"
echo "deb $LAB_MIRROR $LAB_CONTAINERD_SUITE main" >"$root/etc/apt/sources.list.d/containerd.list"
chroot "$root" apt-get -qq -o Dir::Etc::SourceList=/dev/null -o APT::Get::List-Cleanup=false update
kernel=$(chroot "$root" apt-cache depends linux-image-amd64/"$LAB_SUITE" | sed -n 's/^ *Depends: \(linux-image-[0-9].*\)$/\1/p')
chroot "$root" sh -c "cd /var/cache/lab && apt-get -qq download $kernel containerd/$LAB_CONTAINERD_SUITE"
rm "$root/etc/apt/sources.list.d/containerd.list"

dpkg-deb -x "$packages"/containerd_*.deb "$packages/containerd"
cp -a "$packages/containerd/usr/." "$root/usr/"
dpkg-deb -x "$packages"/linux-image-*.deb "$packages/kernel"

# It waits for a network that this machine says nothing about.
rm -f "$root/etc/systemd/system/openvswitch-switch.service.requires/ovs-record-hostname.service"
rm -f "$root"/etc/ssh/ssh_host_*
