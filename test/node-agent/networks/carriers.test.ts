import assert from 'node:assert/strict';
import { mock } from 'node:test';
import { CpuSet } from '../../../model/cpu-set.ts';
import { type DiscoveredNetworks, locateNetworks } from '../../../node-agent/networks/locate.ts';
import { CarrierWatch } from '../../../node-agent/networks/networks.ts';
import { switchConfig } from '../../../node-agent/networks/switch-config.ts';
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
