import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import os from 'node:os';
import { join } from 'node:path';
import { mock } from 'node:test';
import { Networks } from '../../../node-agent/networks/networks.ts';
import { createSysfsTree } from '../../hardware/sysfs-fixture.ts';
import { needs, skipFor } from '../../support/parts.ts';
import { type RealOvs, startRealOvs } from '../ovs-stage.ts';
import { eventually, twoCells as host, recordingLogger, tempDirectories } from '../support.ts';

/** Ends of veth pairs that are ports of Open vSwitch. A link has a carrier while its other end is up. */
const LINKS = ['plumbnic0', 'plumbnic1'] as const;
const ip = (...args: string[]) => execFileSync('ip', args, { stdio: 'pipe' });

/** Open vSwitch and its ports are real. The test provides the sysfs that places them on NUMA nodes. */
describe('networks of a real Open vSwitch that changes at run time', function () {
  needs('openVswitch');
  this.timeout(300_000);
  const temp = tempDirectories();
  let ovs: RealOvs;
  let networks: Networks;
  let stop: AbortController;
  let done: Promise<void>;
  let addresses: ReturnType<typeof mock.method>;
  const logged = recordingLogger();

  before(async function () {
    try {
      for (const name of LINKS) ip('link', 'add', name, 'type', 'veth', 'peer', 'name', `${name}p`);
      for (const name of LINKS.flatMap((one) => [one, `${one}p`])) ip('link', 'set', name, 'up');
    } catch {
      return skipFor({ name: 'veth links that this process may make', install: 'run as root' }, this);
    }
    const tree = createSysfsTree(temp());
    tree.pci('0000:18:00.0', 0);
    tree.pci('0000:af:00.0', 1);
    tree.nic(LINKS[0], '0000:18:00.0');
    tree.nic(LINKS[1], '0000:af:00.0');
    ovs = await startRealOvs(temp());
    stop = new AbortController();
    addresses = mock.method(os, 'networkInterfaces', () => ({
      plumbbr1: [{ address: '2001:db8::1' }],
      'plumbbr1:1': [{ address: '192.0.2.10' }],
      gone: undefined,
    }));
    syncBuiltinESMExports();
    networks = new Networks({
      sysfsRoot: tree.root,
      host: async () => host,
      ovsRundir: ovs.rundir,
      networkMap: undefined,
      lastMap: join(temp(), 'network-map.json'),
      labels: async () => ({}),
      log: logged.log,
    });
    done = networks.run(stop.signal);
  });
  after(async () => {
    stop?.abort();
    await done;
    addresses?.mock.restore();
    syncBuiltinESMExports();
    await ovs?.stop();
    for (const name of LINKS) if (existsSync(`/sys/class/net/${name}`)) ip('link', 'del', name);
  });

  const displayed = () => {
    const { networks: now, down } = networks.view();
    const gone = (name: string | undefined) => (down.has(name) ? '!' : '');
    const physnets = [...now.physnets].sort().map(([name, cells]) => `${name}=${cells}${gone(name)}`);
    return [...physnets, ...(now.tunnel === undefined ? [] : [`tunnel=${now.tunnel}${gone(undefined)}`])].join(' ');
  };
  const becomes = (expected: string) => eventually(() => displayed() === expected, `${expected}, not ${displayed()}`);
  const external = (key: string, value: string) =>
    ovs.vsctl('set', 'Open_vSwitch', '.', `external_ids:${key}=${value}`);

  it('follow bridges and mappings as they are created', async () => {
    await eventually(() => networks.isComplete, 'the first look');
    assert.equal(displayed(), '');
    external('ovn-bridge-mappings', 'physnet0:plumbbr0,physnet1:plumbbr1');
    await eventually(() => networks.view().problems.length === 2, 'bridges are missing');
    for (const [i, link] of LINKS.entries()) {
      ovs.vsctl('add-br', `plumbbr${i}`, '--', 'set', 'bridge', `plumbbr${i}`, 'datapath_type=netdev');
      ovs.vsctl('add-port', `plumbbr${i}`, link);
    }
    await becomes('physnet0=0 physnet1=1');
    assert.equal(addresses.mock.callCount(), 0, 'addresses are listed for a tunnel only');
    external('ovn-encap-ip', '192.0.2.10');
    await becomes('physnet0=0 physnet1=1 tunnel=1');
    assert.deepEqual(networks.view().problems, []);
    const { level, msg, physnets, tunnel } = JSON.parse(JSON.stringify(logged.lines.at(-1)));
    assert.deepEqual([level, msg], [30, 'network map updated']);
    assert.deepEqual([physnets, tunnel], [{ physnet0: '0', physnet1: '1' }, '1']);
  });

  it('follow carriers that are lost and restored', async () => {
    ip('link', 'set', `${LINKS[1]}p`, 'down');
    await becomes('physnet0=0 physnet1=1! tunnel=1!');
    ip('link', 'set', `${LINKS[1]}p`, 'up');
    await becomes('physnet0=0 physnet1=1 tunnel=1');
  });

  it('follow ports that become a bond across NUMA nodes, and the loss of one link', async () => {
    ovs.vsctl('del-port', LINKS[0], '--', 'del-port', LINKS[1], '--', 'add-bond', 'plumbbr1', 'plumbbond', ...LINKS);
    await becomes('physnet0= physnet1=0-1 tunnel=0-1');
    assert.match(networks.view().problems[0]?.message ?? '', /physnet0: bridge plumbbr0 has no uplink/);
    ip('link', 'set', `${LINKS[0]}p`, 'down');
    await new Promise((resolve) => setTimeout(resolve, 300));
    assert.equal(displayed(), 'physnet0= physnet1=0-1 tunnel=0-1', 'a bond with one carrier has one');
    ip('link', 'set', `${LINKS[1]}p`, 'down');
    await becomes('physnet0= physnet1=0-1! tunnel=0-1!');
    for (const name of LINKS) ip('link', 'set', `${name}p`, 'up');
    await becomes('physnet0= physnet1=0-1 tunnel=0-1');
  });

  it('stay as they are when the database server dies, with a problem', async () => {
    ovs.ovsdb.kill('SIGKILL');
    await eventually(() => networks.view().problems[0]?.reason === 'SwitchUnreachable', 'it is missed');
    assert.equal(displayed(), 'physnet0= physnet1=0-1 tunnel=0-1');
    assert.ok(existsSync(join(ovs.rundir, 'db.sock')), 'its socket is still there');
  });
});
