import assert from 'node:assert/strict';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { switchConfig } from '../../../node-agent/networks/switch-config.ts';
import { COLUMNS, followOvsdb } from '../../../node-agent/open-vswitch/ovsdb/follow.ts';
import { createReplica, type Tables } from '../../../node-agent/open-vswitch/ovsdb/replica.ts';
import { vector } from '../../support/vectors.ts';
import { eventually, tempDirectories } from '../support.ts';
import { serveOvsdb } from './ovsdb-stand-in.ts';

interface Exchange {
  readonly request?: { readonly method: string; readonly params: unknown[]; readonly id: number | string };
  readonly reply?: { readonly id: number | string; readonly result?: unknown; readonly error?: unknown };
}
const samples = vector<Exchange[]>('ovsdb-samples.json');

/** The recorded initial reply of monitor_cond_since. */
function recordedTables(): Tables {
  const reply = samples.find(({ request }) => request?.method === 'monitor_cond_since')!.reply!;
  const [, , initial] = reply.result as [unknown, unknown, unknown];
  const replica = createReplica(COLUMNS);
  replica.apply(initial);
  return replica.tables;
}

describe('recorded messages of OVSDB', () => {
  it('the recorded configuration is read', () => {
    const config = switchConfig(recordedTables());
    assert.deepEqual(
      [...config.mappings],
      [
        ['physnet', ['br-ex']],
        ['tenant-a', ['br-data']],
        ['tenant-dpdk', ['br-dpdk']],
      ],
    );
    assert.deepEqual(config.encapIps, ['192.168.10.5']);
    assert.equal(config.pmdCpus.toString(), '2-3');
    const names = (bridge: string) => config.bridges.get(bridge)?.interfaces.map(({ name, kind }) => `${kind} ${name}`);
    assert.deepEqual(names('br-data')?.sort(), ['system ens1f0', 'system ens1f1', 'system ens2f0.100']);
    assert.deepEqual(names('br-dpdk')?.sort(), ['dpdk dpdk0', 'dpdk dpdk1']);
    assert.deepEqual(names('br-int'), [], 'a tunnel and an internal interface are no uplinks');
    assert.deepEqual([...(config.bridges.get('br-int')?.internal ?? [])], ['br-int']);
    const dpdk = config.bridges.get('br-dpdk')?.interfaces.find(({ name }) => name === 'dpdk0');
    assert.deepEqual([dpdk?.devargs, dpdk?.numaId], ['0000:3b:00.0', 1]);
  });
});

describe('the followed tables of OVSDB', () => {
  const temp = tempDirectories();
  let socketPath: string;
  let served: Awaited<ReturnType<typeof serveOvsdb>>;
  let stop: AbortController;
  /** The result of each call. */
  let result: unknown;

  const listen = async () => {
    served = await serveOvsdb(socketPath, (send, { id }) => send(JSON.stringify({ id, result, error: null })));
  };
  beforeEach(async () => {
    socketPath = join(temp(), 'db.sock');
    stop = new AbortController();
    await listen();
  });
  afterEach(() => {
    stop.abort();
    served.close();
  });

  it('follows the tables from the start, after each change and after a restart of the server', async () => {
    const row = (ip: string) => ({
      Open_vSwitch: { r: { insert: { external_ids: ['map', [['ovn-encap-ip', ip]]] } } },
    });
    result = row('10.0.0.1');
    const seen: string[] = [];
    const problems: string[] = [];
    const done = followOvsdb(
      {
        socketPath,
        onTables: (tables) => seen.push(switchConfig(tables).encapIps.join()),
        onProblem: (error) => problems.push(error.message),
      },
      stop.signal,
    );
    await eventually(() => seen.at(-1) === '10.0.0.1', 'the first');
    const notifications = [
      ['update2', 'other', '10.0.0.2'],
      ['update', 'plumbline', '10.0.0.3'],
      ['update2', 'plumbline', '10.0.0.4'],
      ['update2', 'plumbline', '10.0.0.5'],
    ] as const;
    const messages = notifications.map(([method, name, ip]) => ({ id: null, method, params: [name, row(ip)] }));
    served.sockets[0]?.write(messages.map((message) => JSON.stringify(message)).join(''));
    await eventually(() => seen.at(-1) === '10.0.0.5', 'the changes of its own monitor');
    assert.deepEqual(seen, ['10.0.0.1', '10.0.0.4', '10.0.0.5']);
    served.close();
    await eventually(() => problems.length > 0, 'the problem is reported');
    rmSync(socketPath, { force: true });
    await listen();
    await eventually(() => seen.at(-1) === '10.0.0.1', 'followed again');
    stop.abort();
    await done;
  });

  it('waits for an absent socket without attempts, and connects when it is created', async () => {
    served.close();
    rmSync(socketPath, { force: true });
    result = {};
    let follows = 0;
    const problems: string[] = [];
    const onProblem = (error: Error) => void problems.push(error.message);
    const done = followOvsdb({ socketPath, onTables: () => follows++, onProblem }, stop.signal);
    await new Promise((resolve) => setTimeout(resolve, 1000));
    assert.equal(problems.length, 1, problems.join());
    await listen();
    await eventually(() => follows > 0, 'followed');
    stop.abort();
    await done;
  });
});
