import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { mock } from 'node:test';
import { CpuSet } from '../../model/cpu-set.ts';
import { NetworkMapError } from '../../model/networks/network-map.ts';
import { type DiscoveredNetworks, locateNetworks } from '../../node-agent/networks/locate.ts';
import { MapMemory } from '../../node-agent/networks/map-memory.ts';
import { hasNodeSelectors, MapSource, readNetworkMap } from '../../node-agent/networks/map-source.ts';
import { Networks } from '../../node-agent/networks/networks.ts';
import { NicWatch } from '../../node-agent/networks/nic-watch.ts';
import { switchConfig } from '../../node-agent/networks/switch-config.ts';
import { createSysfsTree, type SysfsTree } from '../hardware/sysfs-fixture.ts';
import {
  eventually,
  twoCells as host,
  recordingLogger,
  replaceFile,
  set,
  tempDirectories,
  useDuties,
  writeTree,
} from './support.ts';

function mapOf(directory: string, text: string) {
  writeTree(directory, { 'map.yaml': text });
  return readNetworkMap(join(directory, 'map.yaml'));
}

describe('the last good network map', () => {
  const temp = tempDirectories();
  const cells = set('0-1');
  let path: string;
  let stop: AbortController;
  let logged: ReturnType<typeof recordingLogger>;
  let memory: MapMemory;

  beforeEach(() => {
    path = join(temp(), 'state/network-map.json');
    stop = new AbortController();
    logged = recordingLogger();
    memory = restarted();
  });
  afterEach(() => stop.abort());
  const restarted = () => {
    const next = new MapMemory(path, logged.log);
    next.load(stop.signal);
    return next;
  };
  const used = (text: string | Error | undefined, labels: Record<string, string> | 'unknown' = {}, on = cells) => {
    const map = typeof text === 'string' ? mapOf(temp(), text) : text;
    const { override, fault, isLastGood } = memory.use({
      map,
      labels: labels === 'unknown' ? undefined : labels,
      cells: on,
    });
    return [override?.tunnel?.toString(), fault?.reason, isLastGood];
  };
  const TORN = new Error('torn');
  const FAULTY = [undefined, 'InvalidMap', false];
  const saved = () => (existsSync(path) ? readFileSync(path, 'utf8') : undefined);

  it('is in use instead of a faulty one, also by the next agent, unless it names NUMA nodes that this host lacks', () => {
    assert.deepEqual(used(undefined), [undefined, undefined, false]);
    assert.deepEqual(used(TORN), FAULTY);
    assert.equal(saved(), undefined);
    assert.deepEqual(used('tunnel: {numaNodes: [0]}'), ['0', undefined, false]);
    assert.deepEqual(used('tunnel: {numaNodes: [1]}'), ['1', undefined, false]);
    assert.deepEqual(used('tunnel: {numaNodes: [7]}'), ['1', 'InvalidMap', true]);
    memory = restarted();
    assert.deepEqual(used(TORN), ['1', 'InvalidMap', true]);
    assert.deepEqual(used(TORN, {}, set('0')), FAULTY);
    assert.deepEqual(used('[]'), [undefined, undefined, false]);
    memory = restarted();
    assert.deepEqual(used(TORN), [undefined, 'InvalidMap', true], 'which selects nothing for this node');
  });

  it('keeps every physnet across a restart, also those without a NUMA node and with names of JavaScript', () => {
    used('physnets: {a: {numaNodes: [1]}, b: {numaNodes: []}, constructor: {numaNodes: [0]}}');
    const text = saved() ?? '';
    writeFileSync(path, text.replace('"a"', '"__proto__"'));
    memory = restarted();
    const { override } = memory.use({ map: TORN, labels: {}, cells });
    const found = [...(override?.physnets ?? [])].map(String).sort();
    assert.deepEqual(found, ['__proto__,1', 'b,', 'constructor,0']);
  });

  it('stays in use if it cannot be saved, with one log line, and is saved as soon as it can be', () => {
    mock.timers.enable({ apis: ['setTimeout'] });
    try {
      writeFileSync(dirname(path), 'no directory');
      for (let i = 0; i < 2; i++) assert.deepEqual(used('tunnel: {numaNodes: [1]}'), ['1', undefined, false]);
      assert.deepEqual(used(TORN), ['1', 'InvalidMap', true]);
      assert.deepEqual(
        logged.lines.map(({ level, msg }) => [level, msg]),
        [[40, 'writing a state file failed; retrying']],
      );
      rmSync(dirname(path));
      mock.timers.tick(30_000);
      assert.equal(saved(), '{"networks":{"physnets":{},"tunnel":"1"}}');
    } finally {
      mock.timers.reset();
    }
  });

  it('waits for the labels of the node if the map selects by labels', () => {
    assert.deepEqual(used('[]', 'unknown'), [undefined, 'NodeUnknown', false]);
    used('tunnel: {numaNodes: [1]}');
    assert.deepEqual(used('[]', 'unknown'), ['1', 'NodeUnknown', true]);
  });

  it('is lost with a file that is torn, foreign or of a later version, which is kept', () => {
    for (const text of ['', '[]', '{"networks":{"physnets":{"a":"x"}}}', '{'.repeat(100_000), '{"format":2}']) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, text);
      memory = restarted();
      assert.deepEqual(used(TORN), FAULTY, text.slice(0, 40));
      assert.equal(saved(), undefined);
      assert.ok(existsSync(String(logged.lines.at(-1)?.['keptAs'])));
    }
  });
});

describe('the file of the network map', () => {
  const temp = tempDirectories();

  it('may be empty, and may have entries for nodes with a label', () => {
    assert.deepEqual(mapOf(temp(), ''), []);
    const selected = mapOf(temp(), '- {nodeSelector: {rack: a}, tunnel: {numaNodes: [0]}}');
    assert.equal(hasNodeSelectors(selected), true);
    assert.equal(hasNodeSelectors(mapOf(temp(), 'tunnel: {numaNodes: [0]}')), false);
  });

  it('refuses broken YAML', () =>
    assert.throws(() => mapOf(temp(), 'physnets: {'), /^NetworkMapError: .*\/map\.yaml: not YAML/));

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
  const follow = (root: string, more: Partial<ConstructorParameters<typeof Networks>[0]>) => {
    const networks = new Networks({
      sysfsRoot: root,
      host: async () => host,
      ovsRundir: undefined,
      networkMap: undefined,
      lastMap: `${root}/state/network-map.json`,
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

describe('what changes on the host without a notification', () => {
  const temp = tempDirectories();
  const addresses = new Map([['10.0.0.1', 'nic']]);
  let tree: SysfsTree;
  let changes: number;
  let nics: NicWatch;
  let now: number;

  beforeEach(() => {
    tree = createSysfsTree(temp());
    tree.pci('0000:18:00.0', 0);
    tree.nic('nic', '0000:18:00.0', { files: { carrier: '1\n' } });
    changes = 0;
    now = 0;
    mock.method(performance, 'now', () => now);
    mock.timers.enable({ apis: ['setTimeout', 'setInterval'] });
    nics = new NicWatch(tree.root);
    nics.subscribe(() => changes++);
  });
  afterEach(() => {
    nics.end();
    // First the method of setInterval, which is a fake one, then the timers.
    mock.reset();
  });

  /** The networks of a switch that only has this tunnel endpoint. */
  const search = (encapIp: string): DiscoveredNetworks => {
    const parts = { sysfsRoot: tree.root, cells: CpuSet.of([0]), interfaceOf: (ip: string) => addresses.get(ip) };
    return locateNetworks({ ...switchConfig(new Map()), encapIps: [encapIp] }, parts);
  };
  const pass = (seconds: number) => {
    for (let passed = 0; passed < seconds; passed++) {
      now += 1000;
      mock.timers.tick(1000);
    }
  };

  it('a map that could not be read is read every ten seconds until it can be, without an event', () => {
    const root = temp();
    const map = new MapSource({
      file: join(root, 'map.yaml'),
      readLabels: async () => ({}),
      log: recordingLogger().log,
    });
    symlinkSync(join(root, 'elsewhere/map.yaml'), join(root, 'map.yaml'));
    const stop = new AbortController();
    let reads = 0;
    const fail = (error: unknown) => assert.fail(String(error));
    map.follow({ onMap: () => reads++, onLabels: () => {}, onFailure: fail }, stop.signal);
    assert.match(String(map.map), /cannot read .*map\.yaml: ENOENT/);
    writeTree(root, { 'elsewhere/map.yaml': 'tunnel: {numaNodes: [1]}' });
    pass(20);
    assert.ok(Array.isArray(map.map));
    const before = reads;
    pass(60);
    assert.equal(reads, before, 'a map that was read waits for events');
    stop.abort();
  });

  it('a carrier is read every two seconds, and a change is reported until the next search has seen it', () => {
    nics.follow(search('10.0.0.1'), nics.names());
    pass(60);
    assert.equal(changes, 0);
    tree.files('nic', { carrier: '0\n' });
    pass(2);
    assert.equal(changes, 1);
    nics.follow(search('10.0.0.1'), nics.names());
    pass(60);
    assert.equal(changes, 1);
  });

  it('an address is searched every two seconds while no interface has the address of a tunnel endpoint', () => {
    nics.follow(search('10.0.9.9'), nics.names());
    pass(10);
    assert.ok(changes >= 4 && changes <= 5, `${changes} searches`);
    nics.end();
    pass(10);
    assert.ok(changes <= 5, 'nothing after its end');
  });

  it('a NIC that is renamed or added causes a search within ten seconds, until the next search has seen it', () => {
    tree.files('nic', { carrier: '1\n' });
    const follow = () => nics.follow({ ...search('10.0.0.1'), carriers: new Map() }, nics.names());
    follow();
    pass(60);
    assert.equal(changes, 0);
    for (const name of ['renamed', 'nic']) {
      const before: number = changes;
      renameSync(`${tree.root}/class/net/${name === 'nic' ? 'renamed' : 'nic'}`, `${tree.root}/class/net/${name}`);
      pass(10);
      assert.equal(changes, before + 1, name);
      follow();
    }
    tree.pci('0000:af:00.0', 0);
    tree.nic('other', '0000:af:00.0');
    pass(10);
    assert.equal(changes, 3);
    nics.follow(undefined, '');
    pass(60);
    assert.equal(changes, 3, 'without a switch nothing is read');
  });
});
