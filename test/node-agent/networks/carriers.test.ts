import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { CpuSet } from '../../../model/cpu-set.ts';
import { type DiscoveredNetworks, locateNetworks } from '../../../node-agent/networks/locate.ts';
import { CarrierWatch } from '../../../node-agent/networks/networks.ts';
import type { SwitchConfig } from '../../../node-agent/networks/switch-config.ts';
import { createSysfsTree, type SysfsTree } from '../../hardware/sysfs-tree.ts';
import { tempDirectories } from '../support.ts';

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

  const search = (more: Partial<SwitchConfig>): DiscoveredNetworks => {
    const parts = { sysfsRoot: tree.root, cells: CpuSet.of([0]), interfaceOf: (ip: string) => addresses.get(ip) };
    const none = { bridges: new Map(), integration: new Set<string>(), mappings: new Map(), encapIps: [] };
    return locateNetworks(
      { ...none, hasSeveralEndpoints: false, pmdCpus: CpuSet.EMPTY, polls: false, problems: [], ...more },
      parts,
    );
  };
  const uplink = (linkUp: boolean | undefined): Partial<SwitchConfig> => {
    const port = { name: 'nic', kind: 'system' as const, devargs: undefined, numaId: undefined, linkUp };
    return {
      bridges: new Map([['br', { internal: new Set<string>(), patches: new Map(), interfaces: [port] }]]),
      mappings: new Map([['net', ['br']]]),
    };
  };
  const pass = (seconds: number) => mock.timers.tick(seconds * 1000);

  it('are read every two seconds, and a change is reported until the next search has seen it', () => {
    carriers.follow(search({ encapIps: ['10.0.0.1'] }));
    pass(60);
    assert.equal(changes, 0);
    tree.files('nic', { carrier: '0\n' });
    pass(2);
    assert.equal(changes, 1);
    carriers.follow(search({ encapIps: ['10.0.0.1'] }));
    pass(60);
    assert.equal(changes, 1);
  });

  it('do not wake the agent where the switch reports the link of every uplink, or without networks', () => {
    const started = mock.method(globalThis, 'setInterval');
    for (const located of [search(uplink(true)), search(uplink(false)), search({}), undefined]) {
      carriers.follow(located);
      assert.equal(started.mock.callCount(), 0);
    }
    carriers.follow(search(uplink(undefined)));
    assert.equal(started.mock.callCount(), 1, 'an uplink whose link the switch does not report');
    carriers.follow(search(uplink(true)));
    tree.files('nic', { carrier: '0\n' });
    pass(60);
    assert.equal(changes, 0, 'no longer');
  });

  it('cause a search every two seconds while no interface has the address of a tunnel endpoint', () => {
    carriers.follow(search({ encapIps: ['10.0.9.9'] }));
    pass(10);
    assert.ok(changes >= 4 && changes <= 5, `${changes} searches`);
    carriers.end();
    pass(10);
    assert.ok(changes <= 5, 'nothing after its end');
  });
});
