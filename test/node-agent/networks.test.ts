import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { mock } from 'node:test';
import { CpuSet } from '../../model/cpu-set.ts';
import { NetworkMapError } from '../../model/networks/network-map.ts';
import { type DiscoveredNetworks, locateNetworks } from '../../node-agent/networks/locate.ts';
import { Networks } from '../../node-agent/networks/networks.ts';
import { NicWatch } from '../../node-agent/networks/nic-watch.ts';
import { NodeMap, readNetworkMap } from '../../node-agent/networks/node-map.ts';
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
  useVirtualClock,
  writeTree,
} from './support.ts';

const temp = tempDirectories();
let root: string;
let stop: AbortController;
let logged: ReturnType<typeof recordingLogger>;

/** A directory for a map and what is remembered of it, and an end. */
function setUp(): void {
  beforeEach(() => {
    root = temp();
    stop = new AbortController();
    logged = recordingLogger();
  });
  afterEach(() => stop.abort());
}

const createMap = () =>
  new NodeMap({
    networkMap: join(root, 'map.yaml'),
    lastMap: join(root, 'state/last.json'),
    labels: async () => ({}),
    log: logged.log,
  });
/** Reads the map at once, and what is remembered of it. */
const follow = (map: NodeMap, onMap = () => {}) =>
  map.follow({ onMap, onLabels: () => {}, onFailure: (error) => assert.fail(String(error)) }, stop.signal);

describe('the last good network map', () => {
  setUp();
  let path: string;
  let map: NodeMap;

  beforeEach(() => {
    path = join(root, 'state/last.json');
    map = createMap();
  });
  const used = (text: string, cells = set('0-1')) => {
    writeFileSync(join(root, 'map.yaml'), text);
    follow(map);
    const { override, fault, isLastGood } = map.use(cells);
    return [override?.tunnel?.toString(), fault?.reason, isLastGood];
  };
  const TORN = 'tunnel: [';
  const FAULTY = [undefined, 'InvalidMap', false];
  const saved = () => (existsSync(path) ? readFileSync(path, 'utf8') : undefined);

  it('is in use instead of a faulty one, also by the next agent, unless it names NUMA nodes that this host lacks', () => {
    assert.deepEqual(used(TORN), FAULTY);
    assert.equal(saved(), undefined);
    assert.deepEqual(used('tunnel: {numaNodes: [0]}'), ['0', undefined, false]);
    assert.deepEqual(used('tunnel: {numaNodes: [1]}'), ['1', undefined, false]);
    assert.deepEqual(used('tunnel: {numaNodes: [7]}'), ['1', 'InvalidMap', true]);
    map = createMap();
    assert.deepEqual(used(TORN), ['1', 'InvalidMap', true]);
    assert.deepEqual(used(TORN, set('0')), FAULTY);
    assert.deepEqual(used(''), [undefined, undefined, false]);
    map = createMap();
    assert.deepEqual(used(TORN), [undefined, 'InvalidMap', true], 'which selects nothing for this node');
  });

  it('keeps every physnet across a restart, also those without a NUMA node and with names of JavaScript', () => {
    used('physnets: {a: {numaNodes: [1]}, b: {numaNodes: []}, constructor: {numaNodes: [0]}}');
    writeFileSync(path, (saved() ?? '').replace('"a"', '"__proto__"'));
    map = createMap();
    used(TORN);
    const { override } = map.use(set('0-1'));
    assert.deepEqual([...(override?.physnets ?? [])].map(String).sort(), ['__proto__,1', 'b,', 'constructor,0']);
  });

  it('stays in use until the labels of the node are read, if the map selects by labels', () => {
    const selecting = '- {nodeSelector: {rack: a}, tunnel: {numaNodes: [0]}}';
    assert.deepEqual(used(selecting), [undefined, 'NodeUnknown', false]);
    used('tunnel: {numaNodes: [1]}');
    assert.deepEqual(used(selecting), ['1', 'NodeUnknown', true]);
  });
});

describe('the file of the network map', () => {
  setUp();
  const LONG = 'x'.repeat(5000);
  for (const [what, spoil, message] of [
    ['broken YAML', (file: string) => writeFileSync(file, 'physnets: {'), /^\/.*\/map\.yaml: not YAML/],
    ['a pipe', (file: string) => execFileSync('mkfifo', [file]), /not a regular file/],
    [
      'an overlong name',
      (file: string) => writeFileSync(file, `{physnets: {${LONG}: {numaNodes: [-1]}}}`),
      /network map: /,
    ],
    ['an overlong alias', (file: string) => writeFileSync(file, `a: *${LONG}`), /not YAML/],
  ] as const) {
    it(`gives a short error without blocking for a network map that is ${what}`, () => {
      const file = join(root, 'map.yaml');
      spoil(file);
      assert.throws(
        () => readNetworkMap(file),
        (error) => error instanceof NetworkMapError && message.test(error.message) && error.message.length < 700,
      );
    });
  }
});

describe('the duty that follows networks', () => {
  setUp();
  const start = useDuties();

  it('follows the map and the node labels without a switch', async () => {
    const file = join(root, 'map.yaml');
    writeTree(root, { 'map.yaml': '- {nodeSelector: {rack: a}, tunnel: {numaNodes: [1]}}' });
    let reached = false;
    const networks = new Networks({
      sysfsRoot: root,
      host: async () => host,
      ovsRundir: undefined,
      networkMap: file,
      lastMap: join(root, 'state/last.json'),
      labels: async () => {
        if (!reached) throw new Error('no API server yet');
        return { rack: 'a' };
      },
      log: logged.log,
    });
    start(networks);
    await eventually(() => networks.view().problems[0]?.reason === 'NodeUnknown', 'it waits for labels');
    reached = true;
    await eventually(() => networks.view().networks.tunnel?.toString() === '1', 'the labels came');
    replaceFile(file, 'tunnel: {numaNodes: [0]}');
    await eventually(() => networks.view().networks.tunnel?.toString() === '0', 'the new map');
  });
});

describe('what changes on the host without a notification', () => {
  setUp();
  const addresses = new Map([['10.0.0.1', 'nic']]);
  let tree: SysfsTree;
  let changes: number;
  let nics: NicWatch;

  beforeEach(() => {
    tree = createSysfsTree(temp());
    tree.pci('0000:18:00.0', 0);
    tree.nic('nic', '0000:18:00.0', { files: { carrier: '1\n' } });
    changes = 0;
    nics = new NicWatch(tree.root);
    nics.subscribe(() => changes++);
  });
  afterEach(() => nics.end());
  const clock = useVirtualClock(0);

  /** The networks of a switch that only has this tunnel endpoint. */
  const search = (encapIp: string): DiscoveredNetworks => {
    const parts = { sysfsRoot: tree.root, cells: CpuSet.of([0]), interfaceOf: (ip: string) => addresses.get(ip) };
    return locateNetworks({ ...switchConfig(new Map()), encapIps: [encapIp] }, parts);
  };
  /** In one turn of the event loop, in which no event of a directory arrives. */
  const pass = (seconds: number) => {
    for (let passed = 0; passed < seconds; passed++) {
      clock.seconds++;
      mock.timers.tick(1000);
    }
  };

  it('a map that could not be read is read every ten seconds until it can be, without an event', () => {
    const map = createMap();
    symlinkSync(join(root, 'elsewhere/map.yaml'), join(root, 'map.yaml'));
    let reads = 0;
    follow(map, () => reads++);
    assert.match(map.use(set('0-1')).fault?.message ?? '', /cannot read .*map\.yaml: ENOENT/);
    writeTree(root, { 'elsewhere/map.yaml': 'tunnel: {numaNodes: [1]}' });
    pass(20);
    assert.equal(map.use(set('0-1')).override?.tunnel?.toString(), '1');
    const before = reads;
    pass(60);
    assert.equal(reads, before, 'a map that was read waits for events');
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
    const renew = () => nics.follow({ ...search('10.0.0.1'), carriers: new Map() }, nics.names());
    renew();
    pass(60);
    assert.equal(changes, 0);
    for (const [i, [from, to]] of [
      ['nic', 'renamed'],
      ['renamed', 'nic'],
    ].entries()) {
      renameSync(`${tree.root}/class/net/${from}`, `${tree.root}/class/net/${to}`);
      pass(10);
      assert.equal(changes, i + 1, to);
      renew();
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
