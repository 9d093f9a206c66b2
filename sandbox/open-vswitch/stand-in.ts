import { openSync, rmSync, writeSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { Worker } from 'node:worker_threads';
import { tryLockFile } from '../../native/file-lock.ts';

/** An Open vSwitch daemon that switches nothing: name, pidfile, threads, a socket, database rows for the physnets. */
const { values } = parseArgs({
  options: {
    name: { type: 'string', default: 'ovs-vswitchd' },
    rundir: { type: 'string', default: '.' },
    threads: { type: 'string', default: '6' },
    /** `name=NUMA node`: a bridge with one uplink on that NUMA node. */
    physnet: { type: 'string', multiple: true, default: [] },
  },
});

// The kernel's name of the process (comm), limited to 15 characters.
process.title = values.name;
for (let i = 0; i < Number(values.threads); i++) new Worker('setInterval(() => {}, 1000)', { eval: true });
listen(values.name === 'ovsdb-server' ? 'db.sock' : `${values.name}.${process.pid}.ctl`);
// Readers of the pidfile check its lock, which lasts as long as the file is open.
const pidfile = openSync(join(values.rundir, `${values.name}.pid`), 'w');
tryLockFile(pidfile);
writeSync(pidfile, `${process.pid}\n`);
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => process.exit(0));

/** Responds to each JSON-RPC request, as the database and control sockets of the real daemons do. */
function listen(name: string): void {
  const path = join(values.rundir, name);
  rmSync(path, { force: true });
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk) => {
      // Clients send one request at a time and wait for the response. Text that cannot be parsed is ignored.
      try {
        const { id, method, params } = JSON.parse(chunk.toString()) as {
          id: unknown;
          method?: string;
          params?: unknown;
        };
        if (method === undefined) return;
        const result = method === 'list_dbs' ? ['Open_vSwitch'] : method === 'echo' ? params : tablesFor(method);
        socket.write(JSON.stringify({ id, result, error: null }));
      } catch {
        socket.destroy();
      }
    });
  });
  server.on('error', (error) => process.stderr.write(`${path}: ${error.message}\n`));
  server.listen(path);
}

function tablesFor(method: string): object {
  if (method !== 'monitor_cond' || values.physnet.length === 0) return {};
  const networks = values.physnet.map((text) => text.split('=', 2) as [string, string]);
  const map = (entries: readonly (readonly [string, string])[]) => ['map', entries];
  const rows = (kind: string, make: (name: string, cell: string) => object) =>
    Object.fromEntries(networks.map(([name, cell]) => [`${kind}-${name}`, { insert: make(name, cell) }]));
  const mappings = networks.map(([name]) => `${name}:br-${name}`).join(',');
  return {
    Open_vSwitch: {
      root: { insert: { external_ids: map([['ovn-bridge-mappings', mappings]]), other_config: map([]) } },
    },
    Bridge: rows('bridge', (name) => ({ name: `br-${name}`, ports: ['uuid', `port-${name}`], datapath_type: '' })),
    Port: rows('port', (name) => ({ name: `up-${name}`, interfaces: ['uuid', `interface-${name}`] })),
    Interface: rows('interface', (name, cell) => ({
      name: `up-${name}`,
      type: 'dpdk',
      options: map([]),
      status: map([['numa_id', cell]]),
      link_state: 'up',
    })),
  };
}
