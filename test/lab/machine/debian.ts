export const SUITE = 'trixie';
/** The source of containerd: kubelets since 1.36 refuse version 1.7 of the release. */
export const CONTAINERD_SUITE = 'forky';

export const PACKAGES = [
  'busybox-static',
  'containernetworking-plugins',
  'iproute2',
  'kmod',
  'libstdc++6',
  'nftables',
  'openssh-server',
  'openvswitch-switch',
  'procps',
  'runc',
  'systemd-sysv',
  'udev',
] as const;

export const BOOT_MODULES = ['virtio_pci', 'virtio_blk', 'ext4'] as const;

/** The modules that the guest may load later; the other four thousand would make the disk large and the boot slow. */
export const MODULES = [
  ...BOOT_MODULES,
  ...['virtio_net', 'virtio_rng', 'e1000e', 'nvme', 'overlay', 'fuse', 'autofs4'],
  ...['bridge', 'br_netfilter', 'veth', 'tun', 'dummy', 'macvlan'],
  ...['nf_tables', 'nft_chain_nat', 'nft_masq', 'nft_nat', 'nft_ct', 'nft_compat'],
  ...['openvswitch', 'vport_geneve', 'vport_vxlan', 'geneve', 'nsh', 'psample'],
] as const;

/** Units that only take time in a machine that exists for minutes. */
export const MASKED = [
  ...['apt-daily.timer', 'apt-daily-upgrade.timer', 'dpkg-db-backup.timer', 'e2scrub_all.timer', 'fstrim.timer'],
  ...['e2scrub_reap.service', 'systemd-pstore.service', 'sshd-keygen.service', 'nftables.service'],
  ...['getty@tty1.service', 'getty-static.service', 'serial-getty@ttyS0.service', 'systemd-logind.service'],
  // The disk is newer than their inputs.
  ...['ldconfig.service', 'systemd-hwdb-update.service', 'systemd-journal-catalog-update.service'],
  ...['systemd-networkd.service', 'systemd-timesyncd.service', 'systemd-user-sessions.service'],
] as const;
