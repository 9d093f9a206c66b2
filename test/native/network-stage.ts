import { execFileSync } from 'node:child_process';
import { readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../support/bundles.ts';
import { pathOf } from '../support/parts.ts';
import { type GateFixture, run } from './gate-stage.ts';

export type Network = ReturnType<typeof createNetwork>;

/** Two network namespaces, one for the host and one for a pod, with Debian's plugins on CNI_PATH. */
export function createNetwork(gate: GateFixture) {
  const [host, pod] = ['host', 'pod'].map((name) => `plumbline-${process.pid}-${name}`) as [string, string];
  const ip = (...args: string[]) => execFileSync('ip', args, { encoding: 'utf8' });
  for (const netns of [host, pod]) ip('netns', 'add', netns);
  const plugins = join(pathOf('cniPlugins'), '..');
  for (const name of readdirSync(plugins)) symlinkSync(join(plugins, name), join(gate.binDir, name));
  const podNetns = `/var/run/netns/${pod}`;
  const dataDir = join(gate.directory, 'leases');
  const common = { PATH: process.env['PATH'], PLUMBLINE_RUN_DIR: gate.directory };
  const inHost = ['ip', 'netns', 'exec', host];
  let library: string | undefined;

  return {
    /** Calls a program in the host's namespace, as a runtime calls a plugin. */
    plugin: (verb: string, conf: object, sandbox = 'sandbox-1') => {
      const environment = {
        CNI_COMMAND: verb,
        CNI_CONTAINERID: sandbox,
        CNI_NETNS: podNetns,
        CNI_IFNAME: 'eth0',
        CNI_PATH: gate.binDir,
        CNI_ARGS: 'IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=vm;K8S_POD_UID=uid-1',
      };
      return run([...inHost, gate.shim], { ...common, ...environment }, JSON.stringify(conf));
    },
    /** Calls a list through libcni itself. */
    libcni(verb: 'add' | 'check' | 'del', file: string, sandbox = 'sandbox-1') {
      library ??= buildLibcni(gate.directory);
      const environment = { ...common, CNI_PATH: gate.binDir, CACHE: join(gate.directory, 'cache') };
      return run([...inHost, library, verb, file, sandbox, podNetns], environment, '');
    },
    /** The pod's addresses in the kernel: `eth0 10.88.0.2/16`. */
    podAddresses: () =>
      (JSON.parse(ip('-n', pod, '-j', 'address', 'show')) as Link[])
        .filter(({ ifname }) => ifname !== 'lo')
        .flatMap(({ ifname, addr_info = [] }) =>
          addr_info
            .filter(({ scope }) => scope === 'global')
            .map(({ local, prefixlen }) => `${ifname} ${local}/${prefixlen}`),
        ),
    /** Interfaces in the host's namespace other than lo and bridges. */
    hostLinks: () =>
      (JSON.parse(ip('-n', host, '-j', 'link', 'show')) as Link[])
        .map(({ ifname }) => ifname)
        .filter((name) => name !== 'lo' && !name.startsWith('br-')),
    /** The addresses that host-local keeps for sandboxes. */
    leases: () => {
      try {
        return readdirSync(join(dataDir, 'pods')).filter((name) => /^\d/.test(name));
      } catch {
        return [];
      }
    },
    /** A configuration for the `bridge` plugin. */
    bridge: () => ({
      type: 'bridge',
      bridge: 'br-test',
      ipam: { type: 'host-local', dataDir, ranges: [[{ subnet: '10.88.0.0/16' }]] },
    }),
    remove() {
      for (const netns of [host, pod]) ip('netns', 'del', netns);
    },
  };
}

interface Link {
  readonly ifname: string;
  readonly addr_info?: readonly { readonly local: string; readonly prefixlen: number; readonly scope: string }[];
}

function buildLibcni(directory: string): string {
  const program = join(directory, 'libcni');
  execFileSync(pathOf('libcni'), ['build', '-o', program, join(root, 'test/native/libcni/main.go')], {
    stdio: 'pipe',
    env: { ...process.env, GO111MODULE: 'off', GOPATH: '/usr/share/gocode', CGO_ENABLED: '0' },
  });
  return program;
}
