import { mkdirSync, symlinkSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { writeTree } from '../support/files.ts';

type Files = Readonly<Record<string, string>>;
export type SysfsTree = ReturnType<typeof createSysfsTree>;

/** Creates the part of a sysfs tree with the locations of network interfaces, with the links of the kernel. */
export function createSysfsTree(root: string) {
  const place = (address: string) => `devices/pci0000:00/${address}`;
  const link = (from: string, to: string) => {
    mkdirSync(dirname(join(root, from)), { recursive: true });
    symlinkSync(relative(dirname(join(root, from)), join(root, to)), join(root, from));
  };
  const writeFiles = (name: string, files: Files) => writeTree(join(root, 'class/net', name), files);
  return {
    root,
    /** A PCI function. `node` undefined: without the file. `physfn`: the address of its physical function. */
    pci(address: string, node: number | undefined, physfn?: string) {
      writeTree(root, { [`${place(address)}/vendor`]: '0x8086\n' });
      if (node !== undefined) writeTree(root, { [`${place(address)}/numa_node`]: `${node}\n` });
      if (physfn !== undefined) link(`${place(address)}/physfn`, place(physfn));
      link(`bus/pci/devices/${address}`, place(address));
    },
    /** A NIC on that function, by name; with `virtio`, the function's virtio device is in between. */
    nic(name: string, address: string, { virtio = false, files = {} }: { virtio?: boolean; files?: Files } = {}) {
      const device = virtio ? `${place(address)}/virtio0` : place(address);
      writeTree(root, { [`${device}/net/${name}/ifindex`]: '2\n', [`${device}/net/${name}/iflink`]: '2\n' });
      link(`${device}/net/${name}/device`, device);
      link(`class/net/${name}`, `${device}/net/${name}`);
      writeFiles(name, files);
      return name;
    },
    /** An interface on top of others, by name. `slaves`: it is a bond and lists them in its own file, too. */
    stacked(
      name: string,
      lower: readonly string[],
      { slaves = false, files = {} }: { slaves?: boolean; files?: Files } = {},
    ) {
      const own = `devices/virtual/net/${name}`;
      writeTree(root, { [`${own}/ifindex`]: '9\n', [`${own}/iflink`]: lower.length > 0 ? '2\n' : '9\n' });
      for (const port of lower) link(`${own}/lower_${port}`, `class/net/${port}`);
      if (slaves) writeTree(root, { [`${own}/bonding/slaves`]: `${lower.join(' ')}\n` });
      link(`class/net/${name}`, own);
      writeFiles(name, files);
      return name;
    },
    files: writeFiles,
  };
}
