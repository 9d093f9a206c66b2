import assert from 'node:assert/strict';
import { syncBuiltinESMExports } from 'node:module';
import { createServer, type Socket } from 'node:net';
import os from 'node:os';
import { join } from 'node:path';
import { mock } from 'node:test';
import { createLastMapFile } from '../../../node-agent/networks/map-source.ts';
import { createNetworks, type NetworksDeps } from '../../../node-agent/networks/networks.ts';
import { createJsonStream } from '../../../node-agent/open-vswitch/ovsdb/json-stream.ts';
import { createSysfsTree } from '../../hardware/sysfs-tree.ts';
import { eventually, twoCells as host, recordingLogger, replaceFile, tempDirectories, writeTree } from '../support.ts';

/** The database of a switch whose bridge br-net has the port `near`. */
function startDatabase(path: string) {
  const sockets = new Set<Socket>();
  let requests: number | undefined;
  let sent: object | undefined;
  const row = (id: string, columns: object) => ({ [id]: { insert: columns } });
  const server = createServer((socket) => {
    sockets.add(socket);
    const read = createJsonStream();
    socket.on('error', () => socket.destroy());
    socket.on('data', (chunk) => {
      for (const { method, id } of read(chunk) as { method: string; id: number }[]) {
        if (method === 'monitor_cond') requests = id;
      }
    });
  });
  server.listen(path);
  return {
    monitored: () => requests !== undefined,
    /** Answers with the external_ids: the whole database first, then the change. */
    send(externalIds: Record<string, string>) {
      const root = { external_ids: ['map', Object.entries(externalIds)], other_config: ['map', []] };
      const rest = {
        Bridge: row('b', { name: 'br-net', ports: ['uuid', 'p'], datapath_type: '' }),
        Port: row('p', { name: 'near', interfaces: ['uuid', 'i'] }),
        Interface: row('i', { name: 'near', type: '', options: ['map', []], status: ['map', []], link_state: 'up' }),
      };
      const updates = { Open_vSwitch: row('o', root), ...(sent === undefined && rest) };
      const message =
        sent === undefined
          ? { id: requests, result: updates, error: null }
          : { id: null, method: 'update2', params: ['plumbline', updates] };
      sent = updates;
      for (const socket of sockets) socket.write(JSON.stringify(message));
    },
    async close() {
      for (const socket of sockets) socket.destroy();
      if (server.listening) await new Promise((resolve) => server.close(resolve));
    },
  };
}

describe('the duty that follows networks', () => {
  const temp = tempDirectories();
  let stop: AbortController;
  let done: Promise<void>;
  beforeEach(() => {
    stop = new AbortController();
  });
  const end = async () => {
    stop.abort();
    await done;
  };
  afterEach(end);

  /** Without Open vSwitch; its last good map is kept below the root. */
  const follow = (root: string, more: Partial<NetworksDeps>) => {
    const networks = createNetworks({
      sysfsRoot: root,
      host: async () => host,
      ovsRundir: undefined,
      networkMap: undefined,
      lastMap: createLastMapFile(`${root}/state/network-map.json`, () => undefined),
      labels: async () => ({}),
      log: recordingLogger().log,
      ...more,
    });
    const changes: (string | undefined)[] = [];
    const leave = networks.subscribe(() => changes.push(networks.view().networks.tunnel?.toString()));
    done = networks.run(stop.signal);
    return { networks, changes, leave };
  };

  it('follows the map and the node labels without a switch; a typo keeps the last good map, even after a restart', async () => {
    const root = temp();
    const file = `${root}/map.yaml`;
    writeTree(root, { 'map.yaml': '- {nodeSelector: {rack: a}, tunnel: {numaNodes: [1]}}' });
    let reached = false;
    const labels = async () => {
      if (!reached) throw new Error('no API server yet');
      return { rack: 'a' };
    };
    const { networks, changes } = follow(root, { networkMap: file, labels });
    await eventually(() => networks.view().problems[0]?.reason === 'NodeUnknown', 'it waits for labels');
    reached = true;
    await eventually(() => networks.view().networks.tunnel?.toString() === '1', 'the labels came');
    replaceFile(file, 'tunnel: {numaNodes: [0]}');
    await eventually(() => networks.view().networks.tunnel?.toString() === '0', 'the new map');
    replaceFile(file, 'tunnel: {numaNodes: [7]}');
    await eventually(() => networks.view().mapFault !== undefined, 'a bad map');
    assert.match(networks.view().mapFault ?? '', /NUMA node 7 of the tunnel is not on this host, which has 0-1/);
    assert.deepEqual(changes, [undefined, '1', '0', '0']);
    await end();

    stop = new AbortController();
    const { setTimeout: timeout } = globalThis;
    // The periodic check is at least a second away: it never comes.
    const short = (work: () => void, milliseconds = 0) => timeout(milliseconds < 1000 ? work : () => {}, milliseconds);
    globalThis.setTimeout = short as typeof timeout;
    try {
      const restarted = follow(root, { networkMap: file }).networks;
      await eventually(() => restarted.isComplete, 'the agent is restarted with the bad map');
      assert.equal(restarted.view().networks.tunnel?.toString(), '0');
      assert.match(restarted.view().mapFault ?? '', /the last good map stays in use/);
      replaceFile(file, 'tunnel: {numaNodes: [1]}');
      await eventually(() => restarted.view().networks.tunnel?.toString() === '1', 'the map is repaired');
      assert.equal(restarted.view().mapFault, undefined);
    } finally {
      globalThis.setTimeout = timeout;
    }
  });

  it('reports a map whose directory does not exist, and applies it when the directory appears', async () => {
    const root = temp();
    const { networks } = follow(root, { networkMap: `${root}/later/map.yaml` });
    await eventually(() => networks.isComplete, 'looked at');
    assert.equal(networks.view().problems[0]?.reason, 'InvalidMap');
    assert.match(networks.view().problems[0]?.message ?? '', /later\/map\.yaml/);
    writeTree(root, { 'later/map.yaml': 'tunnel: {numaNodes: [1]}' });
    await eventually(() => networks.view().networks.tunnel?.toString() === '1', 'the map');
    assert.deepEqual(networks.view().problems, []);
  });

  it('follows the switch’s database with the host’s own addresses, and keeps the networks while it is down', async () => {
    const tree = createSysfsTree(temp());
    tree.pci('0000:18:00.0', 0);
    tree.pci('0000:af:00.0', 1);
    tree.nic('near', '0000:18:00.0');
    tree.nic('far', '0000:af:00.0');
    const list = mock.method(os, 'networkInterfaces', () => ({
      near: [{ address: '192.0.2.1' }, { address: '2001:db8::1' }],
      'far:1': [{ address: '192.0.2.2' }],
      gone: undefined,
    }));
    syncBuiltinESMExports();
    const rundir = temp();
    const listen = () => startDatabase(join(rundir, 'db.sock'));
    let database = listen();
    const { log, lines } = recordingLogger();
    const { networks, changes, leave } = follow(tree.root, { ovsRundir: rundir, log });
    const displayed = () => `${networks.view().networks.physnets.get('net')} ${networks.view().networks.tunnel}`;
    try {
      await eventually(() => database.monitored(), 'it asks');
      await new Promise((resolve) => setTimeout(resolve, 100));
      assert.deepEqual([networks.isComplete, changes], [false, []], 'the switch has not answered');
      database.send({ 'ovn-bridge-mappings': 'net:br-net', 'ovn-encap-ip': '192.0.2.2' });
      await eventually(() => networks.isComplete, 'the first answer');
      assert.equal(displayed(), '0 1');
      const { level, msg, physnets, tunnel, down, pmdCpus } = lines[0] ?? {};
      assert.deepEqual([level, msg], [30, 'network map updated']);
      assert.deepEqual(JSON.parse(JSON.stringify({ physnets, tunnel, down, pmdCpus })), {
        physnets: { net: '0' },
        tunnel: '1',
        down: [],
        pmdCpus: '',
      });
      leave();
      database.send({ 'ovn-bridge-mappings': 'net:br-net', 'ovn-encap-ip': '2001:db8::1,192.0.2.2' });
      await eventually(() => displayed() === '0 0-1', 'a change');
      const listed = list.mock.callCount();
      database.send({ 'ovn-bridge-mappings': 'net:br-net' });
      await eventually(() => displayed() === '0 undefined', 'no tunnel');
      assert.equal(list.mock.callCount(), listed, 'addresses are listed for a tunnel only');
      assert.deepEqual(changes, ['1'], 'no longer called');

      await database.close();
      await eventually(() => networks.view().problems[0]?.reason === 'SwitchUnreachable', 'it is missed');
      assert.equal(displayed(), '0 undefined');
      database = listen();
      await eventually(() => database.monitored(), 'it asks again');
      database.send({ 'ovn-bridge-mappings': 'net:br-net,other:br-none' });
      await eventually(() => networks.view().problems[0]?.message.includes('br-none') === true, 'another fault');
      assert.equal(networks.view().problems.length, 1);
      const last = lines.at(-1);
      assert.deepEqual([last?.level, last?.msg], [40, 'network map updated with problems']);
      assert.deepEqual(last?.['doubts'], ['physnet other: there is no bridge br-none']);
    } finally {
      await end();
      await database.close();
      list.mock.restore();
      syncBuiltinESMExports();
    }
  });
});
