import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { buildOnce, dist } from '../support/bundles.ts';
import { endsWithUs } from '../support/children.ts';
import { startDaemonProcess } from '../support/daemon-process.ts';
import { needs } from '../support/parts.ts';
import { shippedNodeOptions } from '../support/shipped.ts';
import { createOvsDatabase } from './ovs-stage.ts';
import { eventually, isListening, tempDirectories } from './support.ts';
import { writeKubeconfig } from './wiring/agent-stage.ts';

/** The limit of the manifest. */
const LIMIT_KILOBYTES = 160 * 1024;
/** Operations of one transaction. */
const BATCH = 10_000;

/** The agent as shipped, with a database of the real ovsdb-server; no ovs-vswitchd, which would take minutes. */
describe('an agent whose Open vSwitch has tens of thousands of rows', function () {
  this.timeout(300_000);
  needs('openVswitch');
  const temp = tempDirectories();
  const started: ChildProcess[] = [];
  let directory: string;
  let socketPath: string;

  before(() => buildOnce());
  beforeEach(async () => {
    directory = temp();
    const run = join(directory, 'var/run/openvswitch');
    mkdirSync(join(directory, 'var/lib/kubelet'), { recursive: true });
    symlinkSync('/sys', join(directory, 'sys'));
    const { env, socket, serverArguments } = createOvsDatabase(run);
    socketPath = socket;
    start('ovsdb-server', [...serverArguments, '--pidfile', '-vconsole:off', '-vsyslog:off'], env);
    await eventually(() => isListening(socketPath), 'ovsdb-server listens');
  });
  afterEach(() => {
    for (const child of started.splice(0)) child.kill('SIGKILL');
  });

  const start = (program: string, args: readonly string[], env: NodeJS.ProcessEnv) => {
    const child = spawn(program, args, { env, stdio: ['ignore', 'ignore', 'pipe'] });
    endsWithUs(child);
    started.push(child);
    return child;
  };
  const transact = (operations: readonly object[]) =>
    new Promise<void>((resolve, reject) => {
      const socket = createConnection(socketPath);
      let text = '';
      socket.on('error', reject);
      socket.on('data', (chunk) => {
        text += String(chunk);
        if (!text.endsWith('}')) return;
        let answer: { result: ({ error?: string } | null)[] } | undefined;
        try {
          answer = JSON.parse(text);
        } catch {
          return;
        }
        socket.destroy();
        const failed = answer?.result.find((one) => one?.error !== undefined);
        if (failed === undefined) resolve();
        else reject(new Error(JSON.stringify(failed)));
      });
      socket.write(JSON.stringify({ id: 0, method: 'transact', params: ['Open_vSwitch', ...operations] }));
    });

  const insert = (table: string, name: string, row: object) => ({ op: 'insert', table, 'uuid-name': name, row });
  const named = (names: readonly string[]) => ['set', names.map((name) => ['named-uuid', name])];
  /** Tunnels as OVN-Kubernetes makes them, each a port and an interface. */
  const addTunnels = async (from: number, to: number) => {
    for (let begin = from; begin < to; begin += BATCH / 2) {
      const numbers = Array.from({ length: Math.min(BATCH / 2, to - begin) }, (_, i) => begin + i);
      const rows = numbers.flatMap((i) => {
        const options = { csum: 'true', key: 'flow', local_ip: '10.1.2.3', remote_ip: `10.9.${i >> 8}.${i & 255}` };
        const name = `ovn-abc${i}-0`;
        return [
          insert('Interface', `i${i}`, { name, type: 'geneve', options: ['map', Object.entries(options)] }),
          insert('Port', `p${i}`, { name, interfaces: ['named-uuid', `i${i}`] }),
        ];
      });
      const where = [['name', '==', 'br-int']];
      const mutations = [['ports', 'insert', named(numbers.map((i) => `p${i}`))]];
      await transact([...rows, { op: 'mutate', table: 'Bridge', where, mutations }]);
    }
  };
  const addBridges = () => {
    const status = ['map', [['numa_id', '0']]];
    return transact([
      insert('Interface', 'i', { name: 'dpdk0', type: 'dpdk', status }),
      insert('Port', 'p', { name: 'dpdk0', interfaces: ['named-uuid', 'i'] }),
      insert('Bridge', 'x', { name: 'br-ex', ports: ['named-uuid', 'p'] }),
      insert('Bridge', 'y', { name: 'br-int' }),
      insert('Open_vSwitch', 'o', { bridges: named(['x', 'y']), external_ids: mapping('physnet0') }),
    ]);
  };
  const mapping = (physnet: string) => ['map', [['ovn-bridge-mappings', `${physnet}:br-ex`]]];
  const removePorts = () =>
    transact([{ op: 'update', table: 'Bridge', where: [['name', '==', 'br-int']], row: { ports: ['set', []] } }]);

  const startAgent = async () => {
    const common = ['--node-name', 'n1', '--probe-port', '0', '--kubeconfig', writeKubeconfig(directory)];
    const env = { ...process.env, ...shippedNodeOptions('node-agent') };
    const {
      process: agent,
      line,
      lines,
      probe,
    } = startDaemonProcess([join(dist, 'node-agent.cjs'), ...common, '--host-root', directory], env);
    started.push(agent);
    await eventually(() => line('agent started') !== undefined, 'started');
    const located = () => lines.findLast(({ msg }) => String(msg).startsWith('network map updated'))?.['physnets'];
    const locates = (physnet: string) => () => JSON.stringify(located()) === JSON.stringify({ [physnet]: '0' });
    const isWorking = async () => {
      assert.deepEqual([agent.exitCode, agent.signalCode], [null, null]);
      assert.match((await probe('/metrics')).body, /plumbline_duty_running\{duty="networks"\} 1/);
      const kilobytes = Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${agent.pid}/status`, 'utf8'))?.[1]);
      assert.ok(kilobytes < LIMIT_KILOBYTES, `${kilobytes} kB`);
    };
    return { lines, locates, isWorking };
  };

  it('locates networks with 20,000 tunnels (40,000 rows), and follows changes', async () => {
    await addBridges();
    await addTunnels(0, 20_000);
    const { locates, isWorking } = await startAgent();
    await eventually(locates('physnet0'), 'located');
    await isWorking();
    await addTunnels(20_000, 20_010);
    await transact([{ op: 'update', table: 'Open_vSwitch', where: [], row: { external_ids: mapping('physnet1') } }]);
    await eventually(locates('physnet1'), 'followed');
    await isWorking();
  });

  it('says that there are too many rows, keeps working, and locates networks once there are fewer', async () => {
    await addBridges();
    await addTunnels(0, 40_000);
    const { lines, locates, isWorking } = await startAgent();
    const refusal = /Open vSwitch has (?:too many ports|more than).*networks are not located$/;
    await eventually(() => lines.some(({ reason }) => refusal.test(String(reason))), 'refused');
    // A few more attempts.
    await new Promise((resolve) => setTimeout(resolve, 3000));
    await isWorking();
    await removePorts();
    await eventually(locates('physnet0'), 'located');
    await isWorking();
  });
});
