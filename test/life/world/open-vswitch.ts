import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createAffinity } from '../../../native/affinity.ts';
import { threadsOfProcess } from '../../../native/peer.ts';
import { createJsonStream } from '../../../node-agent/open-vswitch/ovsdb/json-stream.ts';
import { lockingCommand, type StandIn, startStandIn } from '../../node-agent/support.ts';
import { endsWithUs } from '../../support/children.ts';
import { until } from '../../support/until.ts';

const WORKERS = 2;
const affinity = createAffinity();
export const MACHINE = CpuSet.parse(readFileSync('/sys/devices/system/cpu/online', 'utf8').trim());

const uuids = (ids: readonly string[]) => ['set', ids.map((id) => ['uuid', id])];

/** The daemons of Open vSwitch as processes with real threads, its database as a server, and the file that enables. */
export class OpenVswitch {
  readonly rundir: string;
  readonly enabler: string;
  isOn = false;
  since = 0;
  isDatabaseUp = false;
  databaseSince = 0;
  /** Masks of threads from before the first agent; a thread that is not listed has those of its daemon's start. */
  readonly #originals = new Map<number, string>();
  startedAt = 0;
  #switch: StandIn | undefined;
  #database: ChildProcess | undefined;
  #server: Server | undefined;
  readonly #sockets = new Set<Socket>();
  #ports: readonly string[] = [];

  constructor(directory: string) {
    this.rundir = join(directory, 'ovs');
    mkdirSync(this.rundir);
    mkdirSync(join(directory, 'etc'));
    this.enabler = join(directory, 'etc/enable');
  }

  get pids(): number[] {
    return [this.#switch?.pid, this.#database?.pid].filter((pid) => pid !== undefined);
  }

  /** @param areTheirsSet whether threads get masks of their own: not while an agent may move them */
  async start(areTheirsSet: boolean): Promise<void> {
    const file = (name: string) => join(this.rundir, `${name}.pid`);
    this.#switch = await startStandIn('ovs-vswitchd', WORKERS, file('ovs-vswitchd'));
    const [program = '', ...args] = lockingCommand(file('ovsdb-server'), '/bin/sleep', ['ovsdb-server', '1000000']);
    this.#database = spawn(program, args, { stdio: 'ignore' });
    endsWithUs(this.#database);
    const { pid } = this.#database;
    await until('the pidfile', () => readFileSync(file('ovsdb-server'), 'utf8') === `${pid}\n`);
    this.#originals.clear();
    this.startedAt = performance.now();
    if (!areTheirsSet) return;
    const own = [...MACHINE].map((cpu) => CpuSet.of([cpu]));
    threadsOfProcess(this.#switch.pid)
      .slice(-own.length)
      .forEach((tid, index) => {
        const cpus = own[index] ?? MACHINE;
        affinity.set(tid, cpus.toWords());
        this.#originals.set(tid, cpus.toString());
      });
  }

  async stop(): Promise<void> {
    await this.#switch?.stop();
    const database = this.#database;
    if (database !== undefined && database.exitCode === null) {
      const exited = new Promise((resolve) => database.once('exit', resolve));
      database.kill('SIGKILL');
      await exited;
    }
    this.#switch = undefined;
    this.#database = undefined;
  }

  /** Allowed CPUs of each thread. */
  masks(): Map<number, CpuSet> {
    const masks = new Map<number, CpuSet>();
    for (const tid of this.pids.flatMap(threadsOfProcess)) {
      try {
        masks.set(tid, CpuSet.fromWords(affinity.get(tid)));
      } catch {
        // It has ended.
      }
    }
    return masks;
  }

  /** Threads without the mask that they had before the first agent, as text. */
  notRestored(): string[] {
    const wrong = [...this.masks()].filter(([tid, mask]) => mask.toString() !== this.#original(tid));
    return wrong.map(([tid, mask]) => `thread ${tid} has ${mask}, not ${this.#original(tid)}`);
  }

  #original = (tid: number) => this.#originals.get(tid) ?? MACHINE.toString();

  setOn(isOn: boolean): void {
    if (isOn) writeFileSync(this.enabler, '1');
    else rmSync(this.enabler, { force: true });
    if (isOn !== this.isOn) this.since = performance.now();
    this.isOn = isOn;
  }

  /** A bridge of physnet1 with these ports. */
  setPorts(ports: readonly string[]): void {
    const before = this.#ports;
    this.#ports = ports;
    const gone = before.filter((name) => !ports.includes(name));
    const removed = (names: readonly string[], prefix: string) =>
      Object.fromEntries(names.map((name) => [`${prefix}${name}`, { delete: null }]));
    const update = this.#tables();
    const changes = {
      Port: { ...update.Port, ...removed(gone, 'p-') },
      Interface: { ...update.Interface, ...removed(gone, 'i-') },
      Bridge: {
        b: {
          modify: {
            ports: uuids([...gone, ...ports.filter((name) => !before.includes(name))].map((name) => `p-${name}`)),
          },
        },
      },
    };
    const text = JSON.stringify({ method: 'update2', params: ['plumbline', changes], id: null });
    for (const socket of this.#sockets) socket.write(text);
  }

  #tables() {
    const rows = (row: (name: string) => readonly [string, object]) => Object.fromEntries(this.#ports.map(row));
    return {
      Open_vSwitch: { o: { insert: { external_ids: ['map', [['ovn-bridge-mappings', 'physnet1:br-ex']]] } } },
      Bridge: { b: { insert: { name: 'br-ex', ports: uuids(this.#ports.map((name) => `p-${name}`)) } } },
      Port: rows((name) => [`p-${name}`, { insert: { interfaces: uuids([`i-${name}`]) } }]),
      Interface: rows((name) => [`i-${name}`, { insert: { name, type: 'system', link_state: 'up' } }]),
    };
  }

  async startDatabase(): Promise<void> {
    if (this.isDatabaseUp) return;
    this.#server = createServer((socket) => {
      this.#sockets.add(socket);
      const read = createJsonStream();
      socket.on('error', () => {}).on('close', () => this.#sockets.delete(socket));
      socket.on('data', (chunk) => {
        for (const message of read(chunk) as { id?: unknown }[])
          socket.write(JSON.stringify({ id: message.id, result: this.#tables(), error: null }));
      });
    });
    await new Promise<void>((resolve) => this.#server?.listen(join(this.rundir, 'db.sock'), resolve));
    this.isDatabaseUp = true;
    this.databaseSince = performance.now();
  }

  async stopDatabase(): Promise<void> {
    if (!this.isDatabaseUp) return;
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server?.close(resolve));
    this.isDatabaseUp = false;
    this.databaseSince = performance.now();
  }
}
