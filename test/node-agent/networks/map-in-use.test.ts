import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { mock } from 'node:test';
import { CpuSet } from '../../../model/cpu-set.ts';
import { NetworkMapError } from '../../../model/networks/network-map.ts';
import { type DiscoveredNetworks, locateNetworks } from '../../../node-agent/networks/locate.ts';
import {
  createLastMapFile,
  createMapMemory,
  hasNodeSelectors,
  type LastMap,
  type LastMapFile,
  parseNetworkMapText,
  readNetworkMap,
} from '../../../node-agent/networks/map-source.ts';
import { CarrierWatch, createNetworks, type NetworksDeps } from '../../../node-agent/networks/networks.ts';
import { switchConfig } from '../../../node-agent/networks/switch-config.ts';
import { createSysfsTree, type SysfsTree } from '../../hardware/sysfs-tree.ts';
import {
  eventually,
  twoCells as host,
  recordingLogger,
  replaceFile,
  set,
  tempDirectories,
  useDuties,
  writeTree,
} from '../support.ts';

describe('the last good network map', () => {
  const temp = tempDirectories();
  const cells = set('0-1');
  const map = (text: string) => parseNetworkMapText('map.yaml', text);
  let loads: string[];
  let saves: LastMap[];
  let stored: LastMap | undefined;
  let failure: Error | undefined;
  let logged: ReturnType<typeof recordingLogger>;
  let use: ReturnType<typeof createMapMemory>;

  beforeEach(() => {
    loads = [];
    saves = [];
    stored = undefined;
    failure = undefined;
    logged = recordingLogger();
    const file: LastMapFile = {
      load: (on) => {
        loads.push(on.toString());
        return stored;
      },
      save: (last) => {
        if (failure !== undefined) throw failure;
        saves.push(last);
      },
    };
    use = createMapMemory(file, logged.log);
  });
  const used = (text: string | Error | undefined, labels: Record<string, string> | 'unknown' = {}) => {
    const current = text === undefined || text instanceof Error ? text : map(text);
    const { override, fault, isLastGood } = use({
      map: current,
      labels: labels === 'unknown' ? undefined : labels,
      cells,
    });
    return [override?.tunnel?.toString(), fault?.reason, isLastGood];
  };

  it('is loaded once, when there is a map', () => {
    stored = { networks: { physnets: new Map(), tunnel: CpuSet.parse('1') } };
    assert.deepEqual(used(undefined), [undefined, undefined, false]);
    assert.deepEqual(loads, []);
    assert.deepEqual(used(new Error('torn')), ['1', 'InvalidMap', true]);
    assert.deepEqual(used(new Error('torn')), ['1', 'InvalidMap', true]);
    assert.deepEqual(loads, ['0-1']);
    assert.deepEqual(saves, []);
  });

  it('is saved when it changes, and then in use instead of a faulty one', () => {
    assert.deepEqual(used(new Error('torn')), [undefined, 'InvalidMap', false]);
    assert.deepEqual(used('tunnel: {numaNodes: [0]}'), ['0', undefined, false]);
    assert.deepEqual(used('tunnel: {numaNodes: [0]}'), ['0', undefined, false]);
    assert.equal(saves.length, 1);
    assert.deepEqual(used('tunnel: {numaNodes: [1]}'), ['1', undefined, false]);
    assert.deepEqual(used('tunnel: {numaNodes: [7]}'), ['1', 'InvalidMap', true]);
    assert.deepEqual(used('physnets: {a: {numaNodes: [1]}}'), [undefined, undefined, false]);
    assert.deepEqual(used('physnets: {a: {numaNodes: [0]}}'), [undefined, undefined, false]);
    assert.deepEqual(used('[]'), [undefined, undefined, false]);
    assert.deepEqual(
      saves.map(({ networks }) => networks && [[...networks.physnets].map(String), networks.tunnel?.toString()]),
      [[[], '0'], [[], '1'], [['a,1'], undefined], [['a,0'], undefined], undefined],
    );
    assert.deepEqual(used(new Error('torn')), [undefined, 'InvalidMap', true], 'which selects nothing for this node');
  });

  it('stays in use if it cannot be saved, with one log line', () => {
    failure = new Error('read-only');
    for (let i = 0; i < 2; i++) assert.deepEqual(used('tunnel: {numaNodes: [1]}'), ['1', undefined, false]);
    assert.deepEqual(used(new Error('torn')), ['1', 'InvalidMap', true]);
    assert.deepEqual(
      logged.lines.map(({ level, msg }) => [level, msg]),
      [[40, 'saving the network map failed']],
    );
  });

  it('waits for the labels of the node if the map selects by labels', () => {
    assert.deepEqual(used('[]', 'unknown'), [undefined, 'NodeUnknown', false]);
    use({ map: map('tunnel: {numaNodes: [1]}'), labels: {}, cells });
    assert.deepEqual(used('[]', 'unknown'), ['1', 'NodeUnknown', true]);
  });

  it('survives a restart, even one that selects nothing for this node; an invalid file counts as missing', () => {
    const path = `${temp()}/state/network-map.json`;
    const file = createLastMapFile(path, () => undefined);
    assert.equal(file.load(set('0-1')), undefined);
    file.save({
      networks: {
        physnets: new Map([
          ['a', set('1')],
          ['b', CpuSet.EMPTY],
        ]),
        tunnel: set('0-1'),
      },
    });
    const loaded = createLastMapFile(path, () => undefined).load(set('0-1'));
    assert.deepEqual([...(loaded?.networks?.physnets ?? [])].map(String), ['a,1', 'b,']);
    assert.equal(loaded?.networks?.tunnel?.toString(), '0-1');
    assert.equal(file.load(set('0')), undefined, 'of a host with other NUMA nodes');
    file.save({ networks: undefined });
    assert.deepEqual(file.load(set('0')), { networks: undefined });
    const reasons: string[] = [];
    const reading = createLastMapFile(path, (why) => reasons.push(why));
    for (const text of ['', '[]', '{"networks":{"physnets":{"a":"x"}}}', '{'.repeat(100_000), '{"format":2}']) {
      writeFileSync(path, text);
      assert.equal(reading.load(set('0-1')), undefined, text.slice(0, 40));
    }
    assert.match(reasons.at(-1) ?? '', /it has format 2, this agent reads format 1: a later version has written it/);
  });
});

describe('the file of the network map', () => {
  const temp = tempDirectories();

  it('may be empty, and may have entries for nodes with a label', () => {
    assert.deepEqual(parseNetworkMapText('map.yaml', ''), []);
    const selected = parseNetworkMapText('map.yaml', '- {nodeSelector: {rack: a}, tunnel: {numaNodes: [0]}}');
    assert.equal(hasNodeSelectors(selected), true);
    assert.equal(hasNodeSelectors(parseNetworkMapText('map.yaml', 'tunnel: {numaNodes: [0]}')), false);
  });

  it('refuses broken YAML', () =>
    assert.throws(() => parseNetworkMapText('map.yaml', 'physnets: {'), /^NetworkMapError: map.yaml: not YAML/));

  for (const [what, spoil] of [
    ['a pipe', (file: string) => execFileSync('mkfifo', [file])],
    ['an overlong name', (file: string) => writeFileSync(file, `{physnets: {${'x'.repeat(5000)}: {numaNodes: [-1]}}}`)],
    ['an overlong alias', (file: string) => writeFileSync(file, `a: *${'x'.repeat(5000)}`)],
  ] as const) {
    it(`gives a short error without blocking for a network map that is ${what}`, () => {
      const file = `${temp()}/map.yaml`;
      spoil(file);
      assert.throws(
        () => readNetworkMap(file),
        (error) => error instanceof NetworkMapError && error.message.length < 700,
      );
    });
  }
});

describe('the duty that follows networks', () => {
  const temp = tempDirectories();
  const start = useDuties();

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
    start(networks);
    return networks;
  };

  it('follows the map and the node labels without a switch', async () => {
    const root = temp();
    const file = `${root}/map.yaml`;
    writeTree(root, { 'map.yaml': '- {nodeSelector: {rack: a}, tunnel: {numaNodes: [1]}}' });
    let reached = false;
    const labels = async () => {
      if (!reached) throw new Error('no API server yet');
      return { rack: 'a' };
    };
    const networks = follow(root, { networkMap: file, labels });
    await eventually(() => networks.view().problems[0]?.reason === 'NodeUnknown', 'it waits for labels');
    reached = true;
    await eventually(() => networks.view().networks.tunnel?.toString() === '1', 'the labels came');
    replaceFile(file, 'tunnel: {numaNodes: [0]}');
    await eventually(() => networks.view().networks.tunnel?.toString() === '0', 'the new map');
  });
});

describe('the carriers that the switch does not report', () => {
  const temp = tempDirectories();
  const addresses = new Map([['10.0.0.1', 'nic']]);
  let tree: SysfsTree;
  let changes: number;
  let carriers: CarrierWatch;

  beforeEach(() => {
    tree = createSysfsTree(temp());
    tree.pci('0000:18:00.0', 0);
    tree.nic('nic', '0000:18:00.0', { files: { carrier: '1\n' } });
    changes = 0;
    mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
    carriers = new CarrierWatch(tree.root);
    carriers.subscribe(() => changes++);
  });
  afterEach(() => {
    carriers.end();
    // First the method of setInterval, which is a fake one, then the timers.
    mock.reset();
  });

  /** The networks of a switch that only has this tunnel endpoint. */
  const search = (encapIp: string): DiscoveredNetworks => {
    const parts = { sysfsRoot: tree.root, cells: CpuSet.of([0]), interfaceOf: (ip: string) => addresses.get(ip) };
    return locateNetworks({ ...switchConfig(new Map()), encapIps: [encapIp] }, parts);
  };
  const pass = (seconds: number) => mock.timers.tick(seconds * 1000);

  it('are read every two seconds, and a change is reported until the next search has seen it', () => {
    carriers.follow(search('10.0.0.1'));
    pass(60);
    assert.equal(changes, 0);
    tree.files('nic', { carrier: '0\n' });
    pass(2);
    assert.equal(changes, 1);
    carriers.follow(search('10.0.0.1'));
    pass(60);
    assert.equal(changes, 1);
  });

  it('cause a search every two seconds while no interface has the address of a tunnel endpoint', () => {
    carriers.follow(search('10.0.9.9'));
    pass(10);
    assert.ok(changes >= 4 && changes <= 5, `${changes} searches`);
    carriers.end();
    pass(10);
    assert.ok(changes <= 5, 'nothing after its end');
  });
});
