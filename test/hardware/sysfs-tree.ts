import { mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { writeTree } from '../support/files.ts';

/** Creates the part of a sysfs tree with the locations of network interfaces, with the links of the kernel. */
export interface SysfsTree {
  readonly root: string;
  /** A PCI function. `node` undefined: without the file. `physfn`: the address of its physical function. */
  pci(address: string, node: number | undefined, physfn?: string): void;
  /** A NIC on that function, by name; with `virtio`, the function's virtio device is in between. */
  nic(name: string, address: string, options?: { virtio?: boolean; files?: Record<string, string> }): string;
  /** An interface on top of others, by name. `slaves`: it is a bond and lists them in its own file, too. */
  stacked(
    name: string,
    lower: readonly string[],
    options?: { slaves?: boolean; files?: Record<string, string> },
  ): string;
  files(name: string, files: Readonly<Record<string, string>>): void;
}

export function createSysfsTree(root: string): SysfsTree {
  const place = (address: string) => `devices/pci0000:00/${address}`;
  const link = (from: string, to: string) => {
    mkdirSync(dirname(join(root, from)), { recursive: true });
    symlinkSync(relative(dirname(join(root, from)), join(root, to)), join(root, from));
  };
  const tree: SysfsTree = {
    root,
    pci(address, node, physfn) {
      writeTree(root, { [`${place(address)}/vendor`]: '0x8086\n' });
      if (node !== undefined) writeTree(root, { [`${place(address)}/numa_node`]: `${node}\n` });
      if (physfn !== undefined) link(`${place(address)}/physfn`, place(physfn));
      link(`bus/pci/devices/${address}`, place(address));
    },
    nic(name, address, { virtio = false, files = {} } = {}) {
      const device = virtio ? `${place(address)}/virtio0` : place(address);
      writeTree(root, { [`${device}/net/${name}/ifindex`]: '2\n', [`${device}/net/${name}/iflink`]: '2\n' });
      link(`${device}/net/${name}/device`, device);
      link(`class/net/${name}`, `${device}/net/${name}`);
      tree.files(name, files);
      return name;
    },
    stacked(name, lower, { slaves = false, files = {} } = {}) {
      const own = `devices/virtual/net/${name}`;
      writeTree(root, { [`${own}/ifindex`]: '9\n', [`${own}/iflink`]: lower.length > 0 ? '2\n' : '9\n' });
      for (const port of lower) link(`${own}/lower_${port}`, `class/net/${port}`);
      if (slaves) writeTree(root, { [`${own}/bonding/slaves`]: `${lower.join(' ')}\n` });
      link(`class/net/${name}`, own);
      tree.files(name, files);
      return name;
    },
    files(name, files) {
      writeTree(join(root, 'class/net', name), files);
    },
  };
  return tree;
}
