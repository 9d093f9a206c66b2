import { execFileSync, spawn } from 'node:child_process';
import { readdirSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../support/bundles.ts';
import { pathOf } from '../support/parts.ts';
import type { GateFixture } from './gate.ts';

/** Two network namespaces, one for the host and one for a pod, with Debian's plugins on CNI_PATH. */
export interface Network {
  readonly podNetns: string;
  /** Calls a program in the host's namespace, as a runtime calls a plugin. */
  plugin(verb: string, conf: object, sandbox?: string): Promise<Answer>;
  /** Calls a list through libcni itself. */
  libcni(verb: 'add' | 'check' | 'del', file: string, sandbox?: string): Promise<Answer>;
  /** The pod's addresses in the kernel: `eth0 10.88.0.2/16`. */
  podAddresses(): string[];
  /** Interfaces in the host's namespace other than lo and bridges. */
  hostLinks(): string[];
  /** The addresses that host-local keeps for sandboxes. */
  leases(): string[];
  /** A configuration for the `bridge` plugin. */
  bridge(): Record<string, unknown>;
  remove(): void;
}

export interface Answer {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  json(): Record<string, unknown>;
}

let serial = 0;

export function createNetwork(gate: GateFixture): Network {
  const id = `plumbline-${process.pid}-${serial++}`;
  const [host, pod] = [`${id}-host`, `${id}-pod`];
  const ip = (...args: string[]) => execFileSync('ip', args, { encoding: 'utf8' });
  for (const netns of [host, pod]) ip('netns', 'add', netns);
  const plugins = join(pathOf('cniPlugins'), '..');
  for (const name of readdirSync(plugins)) symlinkSync(join(plugins, name), join(gate.binDir, name));
  const podNetns = `/var/run/netns/${pod}`;
  const dataDir = join(gate.directory, 'leases');
  const common = { PATH: process.env['PATH'], PLUMBLINE_RUN_DIR: gate.directory };
  let library: string | undefined;

  return {
    podNetns,
    plugin: (verb, conf, sandbox = 'sandbox-1') => {
      const environment = {
        CNI_COMMAND: verb,
        CNI_CONTAINERID: sandbox,
        CNI_NETNS: podNetns,
        CNI_IFNAME: 'eth0',
        CNI_PATH: gate.binDir,
        CNI_ARGS: 'IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=vm;K8S_POD_UID=uid-1',
      };
      return run('ip', ['netns', 'exec', host, gate.shim], { ...common, ...environment }, JSON.stringify(conf));
    },
    libcni(verb, file, sandbox = 'sandbox-1') {
      library ??= buildLibcni(gate.directory);
      const environment = { ...common, CNI_PATH: gate.binDir, CACHE: join(gate.directory, 'cache') };
      return run('ip', ['netns', 'exec', host, library, verb, file, sandbox, podNetns], environment, '');
    },
    podAddresses: () =>
      (JSON.parse(ip('-n', pod, '-j', 'address', 'show')) as Link[])
        .filter(({ ifname }) => ifname !== 'lo')
        .flatMap(({ ifname, addr_info = [] }) =>
          addr_info
            .filter(({ scope }) => scope === 'global')
            .map(({ local, prefixlen }) => `${ifname} ${local}/${prefixlen}`),
        ),
    hostLinks: () =>
      (JSON.parse(ip('-n', host, '-j', 'link', 'show')) as Link[])
        .map(({ ifname }) => ifname)
        .filter((name) => name !== 'lo' && !name.startsWith('br-')),
    leases: () => {
      try {
        return readdirSync(join(dataDir, 'pods')).filter((name) => /^\d/.test(name));
      } catch {
        return [];
      }
    },
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

/** A plugin that does its work and then does not return. */
export function slowPlugin(gate: GateFixture, name: string, real: string): () => readonly string[] {
  const delegate = gate.delegate(
    name,
    `printf '%s' "$conf" | ${join(gate.binDir, real)}; [ "$CNI_COMMAND" = DEL ] || exec sleep 60`,
  );
  return () => delegate.calls().map(({ verb }) => verb);
}

function buildLibcni(directory: string): string {
  const program = join(directory, 'libcni');
  execFileSync(pathOf('libcni'), ['build', '-o', program, join(root, 'test/native/libcni/main.go')], {
    stdio: 'pipe',
    env: { ...process.env, GO111MODULE: 'off', GOPATH: '/usr/share/gocode', CGO_ENABLED: '0' },
  });
  return program;
}

function run(program: string, args: string[], env: Record<string, string | undefined>, input: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { env: env as NodeJS.ProcessEnv, stdio: 'pipe' });
    const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []];
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
    child.on('error', reject);
    child.on('close', (code) => {
      const text = Buffer.concat(stdout).toString();
      const json = () => JSON.parse(text) as Record<string, unknown>;
      resolve({ code, stdout: text, stderr: Buffer.concat(stderr).toString(), json });
    });
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
  });
}
