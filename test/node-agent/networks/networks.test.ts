import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { CpuSet } from '../../../model/cpu-set.ts';
import { type DiscoveredNetworks, locateNetworks } from '../../../node-agent/networks/locate.ts';
import { createLastMapFile } from '../../../node-agent/networks/map-source.ts';
import { CarrierWatch, createNetworks, type NetworksDeps } from '../../../node-agent/networks/networks.ts';
import { switchConfig } from '../../../node-agent/networks/switch-config.ts';
import { createSysfsTree, type SysfsTree } from '../../hardware/sysfs-tree.ts';
import { eventually, twoCells as host, recordingLogger, replaceFile, tempDirectories, writeTree } from '../support.ts';

describe('the duty that follows networks', () => {
  const temp = tempDirectories();
  let stop: AbortController;
  let done: Promise<void>;
  beforeEach(() => {
    stop = new AbortController();
  });
  afterEach(async () => {
    stop.abort();
    await done;
  });

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
    done = networks.run(stop.signal);
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
