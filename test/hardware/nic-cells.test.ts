import assert from 'node:assert/strict';
import { hasCarrier, isGuestSide, locateNic, locatePci } from '../../hardware/nic-cells.ts';
import { tempDirectories } from '../support/files.ts';
import { processorTime } from '../support/processor-time.ts';
import { createSysfsTree, type SysfsTree } from './sysfs-fixture.ts';

let tree: SysfsTree;

/** Two NICs on NUMA node 0, two on 1, one without a node; the stacked interfaces differ between cases. */
function setUp(): void {
  const temp = tempDirectories();
  beforeEach(() => {
    tree = createSysfsTree(temp());
    const place = (name: string, address: string, node: number) => {
      tree.pci(address, node);
      tree.nic(name, address);
    };
    place('near0', '0000:18:00.0', 0);
    place('near1', '0000:18:00.1', 0);
    place('far0', '0000:af:00.0', 1);
    place('far1', '0000:af:00.1', 1);
    place('nowhere0', '0000:00:03.0', -1);
  });
}

describe('NUMA nodes of network interfaces', () => {
  setUp();

  const bond = (...ports: string[]) => tree.stacked('bond0', ports, { slaves: true });
  const cases: [string, () => string, [string, string, string[]]][] = [
    ['a plain NIC', () => 'far0', ['hardware', '1', []]],
    ['-1 is unknown, never node 0', () => 'nowhere0', ['hardware', '', ['nowhere0']]],
    ['a missing interface', () => 'gone0', ['absent', '', []]],
    ['a bond across NUMA nodes', () => bond('near0', 'far0'), ['hardware', '0-1', []]],
    [
      'a bond that only its own file describes',
      () => {
        bond();
        tree.files('bond0', { 'bonding/slaves': 'far0 far1\n' });
        return 'bond0';
      },
      ['hardware', '1', []],
    ],
    ['a bond with one NIC without a node', () => bond('near0', 'nowhere0'), ['hardware', '0', ['nowhere0']]],
    ['a VLAN on a bond', () => tree.stacked('bond0.100', [bond('far0', 'far1')]), ['hardware', '1', []]],
    [
      'a bridge, with a NIC and a guest’s tap',
      () => {
        tree.stacked('tap0', [], { files: { tun_flags: '0x1\n' } });
        return tree.stacked('br0', ['near0', 'tap0']);
      },
      ['hardware', '0', []],
    ],
    [
      'interfaces that stack in a circle',
      () => {
        tree.stacked('a0', ['b0']);
        tree.stacked('b0', ['a0']);
        return 'a0';
      },
      ['virtual', '', []],
    ],
    [
      'virtio: its function is one level up',
      () => {
        tree.pci('0000:00:04.0', 1);
        return tree.nic('eth0', '0000:00:04.0', { virtio: true });
      },
      ['hardware', '1', []],
    ],
    [
      'a virtual function without a node: that of its physical function',
      () => {
        tree.pci('0000:af:02.0', -1, '0000:af:00.0');
        return tree.nic('vf0', '0000:af:02.0');
      },
      ['hardware', '1', []],
    ],
    [
      'a device without the file and without a parent',
      () => {
        tree.pci('0000:01:00.0', undefined);
        return tree.nic('eth1', '0000:01:00.0');
      },
      ['hardware', '', ['eth1']],
    ],
  ];
  for (const [name, build, expected] of cases) {
    it(name, () => {
      const { kind, cells, unknown } = locateNic(tree.root, build());
      assert.deepEqual([kind, cells.toString(), unknown], expected);
    });
  }

  it('a stack with many paths to the same interfaces costs only the number of interfaces', () => {
    let below = ['near0', 'far0'];
    for (let level = 0; level < 24; level++) {
      below = [0, 1].map((side) => tree.stacked(`s${level}-${side}`, below));
    }
    const used = processorTime(() => assert.equal(locateNic(tree.root, 's23-0').cells.toString(), '0-1'));
    assert.ok(used < 2000, `${used} ms for 48 interfaces`);
  });

  it('a name that leaves the directory of interfaces is refused', () => {
    for (const name of ['../net/far0', '..', '', 'far0\0']) {
      assert.equal(locateNic(tree.root, name).kind, 'absent', JSON.stringify(name));
      assert.equal(hasCarrier(tree.root, name), undefined);
    }
  });

  it('a PCI address is resolved', () => {
    assert.equal(locatePci(tree.root, '0000:af:00.1').cells.toString(), '1');
    assert.deepEqual(locatePci(tree.root, '0000:00:03.0').unknown, ['0000:00:03.0']);
    assert.equal(locatePci(tree.root, '0000:77:00.0').kind, 'absent');
  });
});

describe('guest interfaces and carriers', () => {
  setUp();

  it('veth, tap and representors belong to guests; NICs, VLANs and dummies do not', () => {
    tree.stacked('tap0', [], { files: { tun_flags: '0x1002\n' } });
    tree.stacked('veth0', [], { files: { iflink: '31\n' } });
    tree.nic('rep0', '0000:af:00.0', { files: { phys_port_name: 'pf0vf3\n' } });
    tree.nic('p0', '0000:af:00.0', { files: { phys_port_name: 'p0\n' } });
    tree.stacked('far0.100', ['far0']);
    tree.stacked('dummy0', []);
    const all = ['tap0', 'veth0', 'rep0', 'p0', 'far0', 'far0.100', 'dummy0'];
    assert.equal(all.filter((name) => isGuestSide(tree.root, name)).join(), 'tap0,veth0,rep0');
  });

  const carriers: [what: string, files: Record<string, string>, expected: boolean | undefined][] = [
    ['a carrier', { carrier: '1\n' }, true],
    ['no carrier', { carrier: '0\n' }, false],
    ['an interface that is down', { operstate: 'down\n' }, false],
    ['an unknown state', { operstate: 'unknown\n' }, undefined],
    ['no file', {}, undefined],
  ];
  for (const [what, files, expected] of carriers) {
    it(`${what}: ${expected}`, () => {
      tree.files('far0', files);
      assert.equal(hasCarrier(tree.root, 'far0'), expected);
    });
  }
});
