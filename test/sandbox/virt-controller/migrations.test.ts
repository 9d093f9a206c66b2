import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { MIGRATION_LABEL } from '../../../model/launcher/recognize.ts';
import {
  MIGRATIONS,
  NODES,
  PODS,
  VIRTUAL_MACHINE_INSTANCES,
  VIRTUAL_MACHINES,
} from '../../../sandbox/api-server/built-in-types.ts';
import { createSandbox } from '../../../sandbox/cluster/cluster.ts';
import type { JsonRecord, KubeMigration, KubePod } from '../../../sandbox/objects.ts';
import type { MigrationSettings } from '../../../sandbox/virt-controller/migrations.ts';
import { tempDirectories } from '../../support/files.ts';
import { needs, pathOf } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import { type Client, clientOf, TOKEN, TWO_NODES } from '../support.ts';

const VMS = '/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachines';
/** Eight cores of two threads. */
const HOST = { ...TWO_NODES, cells: [{ id: 0, cpus: '0-15' }] };
const LIST = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancemigrations';

/** A cluster of emulated nodes of 8 cores, of which each suite has its own. */
function useSandbox(names: readonly string[], migrations: Partial<MigrationSettings> = {}) {
  const temp = tempDirectories();
  let sandbox: ReturnType<typeof createSandbox>;
  let call: Client;
  const faults: unknown[] = [];
  before(async () => {
    sandbox = createSandbox({
      directory: temp(),
      migrations: { copySeconds: 0, ...migrations },
      nodes: names.map((name) => ({ name, host: HOST })),
      onFault: (error) => faults.push(error),
    });
    sandbox.server.addToken(TOKEN, { username: 'tester', groups: ['system:authenticated'] });
    await sandbox.start();
    call = clientOf(sandbox.server);
  });
  after(() => sandbox?.stop());
  afterEach(async () => {
    const { client } = sandbox;
    for (const machine of client.list(VIRTUAL_MACHINES)) await client.delete(VIRTUAL_MACHINES, machine);
    await until('the VMs are gone', () => client.list(PODS).length + client.list(VIRTUAL_MACHINES).length === 0);
    for (const migration of client.list(MIGRATIONS)) await client.delete(MIGRATIONS, migration);
    await until('the migrations are gone', () => client.list(MIGRATIONS).length === 0);
    for (const node of names) await cordon(node, false);
    assert.deepEqual(faults.splice(0), []);
  });
  const cordon = (name: string, unschedulable = true) =>
    sandbox.client.edit(NODES, sandbox.client.get(NODES, undefined, name)!, (draft) => {
      draft.spec = { ...draft.spec, unschedulable };
    });
  const vmi = (name: string) => sandbox.client.get(VIRTUAL_MACHINE_INSTANCES, 'default', name);
  const launchers = (name: string) =>
    sandbox.client.list(PODS).filter(({ metadata }) => metadata.labels?.['vm.kubevirt.io/name'] === name);
  const launcherOn = (name: string, node: string) => launchers(name).find(({ spec }) => spec.nodeName === node);
  return {
    get client() {
      return sandbox.client;
    },
    kubeconfig: () => sandbox.kubeconfig({ kind: 'admin' }),
    temp,
    call: (...args: Parameters<Client>) => call(...args),
    vmi,
    launchers,
    launcherOn,
    migrations: () => sandbox.client.list(MIGRATIONS),
    /** Starts a VM and waits until it runs. */
    async start(name: string, cores = 2, devices: JsonRecord = {}) {
      const domain = { cpu: { cores, threads: 2, dedicatedCpuPlacement: true }, devices };
      await sandbox.client.create(VIRTUAL_MACHINES, {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachine',
        metadata: { name, namespace: 'default' },
        spec: { runStrategy: 'Always', template: { spec: { evictionStrategy: 'LiveMigrate', domain } } },
      });
      await until(`${name} runs`, () => vmi(name)?.status?.phase === 'Running');
      const at = vmi(name)?.status?.nodeName ?? '';
      return { node: at, pod: launcherOn(name, at)! };
    },
    cordon,
    evict: ({ metadata: { name, namespace } }: KubePod, more: object = {}) => {
      const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name, namespace }, ...more };
      return call('POST', `/api/v1/namespaces/${namespace}/pods/${name}/eviction`, eviction);
    },
    /** Waits until a launcher has found no node. */
    untilWaiting: (name: string) =>
      until('its target waits', () => launchers(name).find(({ spec, status }) => !spec.nodeName && status?.conditions)),
    migrate: (name: string) => call('PUT', `${VMS}/${name}/migrate`, {}, { accept: '*/*' }),
  };
}

const failure = ({ status }: KubeMigration) => status?.migrationState?.failureReason;

describe('sandbox: migrations', () => {
  const suite = useSandbox(['n1', 'n2']);

  it('an eviction is denied and moves the VM; then the launcher that it has left can be evicted', async () => {
    const { node, pod } = await suite.start('vm');
    const dry = await suite.evict(pod, { deleteOptions: { dryRun: ['All'] } });
    assert.deepEqual([dry.status, suite.vmi('vm')?.status?.evacuationNodeName], [429, undefined]);
    const denied = await suite.evict(pod);
    assert.equal(denied.status, 429);
    assert.match(denied.body.message ?? '', /Eviction triggered evacuation of VMI "default\/vm"$/);
    await until('the VM has moved', () => suite.vmi('vm')?.status?.nodeName !== node);
    const { status, metadata } = suite.vmi('vm')!;
    const other = node === 'n1' ? 'n2' : 'n1';
    const target = suite.launcherOn('vm', other)!;
    assert.deepEqual([status?.nodeName, metadata.labels?.['kubevirt.io/nodeName']], [other, other]);
    assert.deepEqual([status?.phase, status?.evacuationNodeName], ['Running', undefined]);
    const { migrationState } = status!;
    assert.deepEqual(
      [migrationState?.sourceNode, migrationState?.targetNode, migrationState?.completed, migrationState?.failed],
      [node, other, true, undefined],
    );
    const [migration] = suite.migrations();
    assert.equal(target.metadata.labels?.[MIGRATION_LABEL], migration?.metadata.uid);
    await until('the migration has succeeded', () => suite.migrations()[0]?.status?.phase === 'Succeeded');
    await until('the source’s launcher has ended', () => suite.launcherOn('vm', node)?.status?.phase === 'Succeeded');
    assert.deepEqual(Object.keys(suite.vmi('vm')?.status?.activePods ?? {}), [target.metadata.uid]);
    assert.equal((await suite.evict(pod)).status, 201);
    assert.equal(suite.launcherOn('vm', node), undefined);
  });

  it('the target gets its own CPUs, and those of the source are free again', async () => {
    // Two on one node do not fit.
    const { node } = await suite.start('vm', 6);
    await suite.migrate('vm');
    await until('the VM has moved', () => suite.vmi('vm')?.status?.nodeName !== node);
    await until('its old launcher has ended', () => suite.launcherOn('vm', node)?.status?.phase === 'Succeeded');
    const second = await suite.start('second', 6);
    assert.equal(second.node, node);
    await suite.migrate('vm');
    const waits = await suite.untilWaiting('vm');
    assert.match(waits.status?.conditions?.[0]?.message ?? '', /^0\/2 nodes are available: 2 Insufficient cpu\./);
    assert.equal(suite.vmi('vm')?.status?.phase, 'Running');
  });

  it('a second migration of a VM is refused, and one of a VM that cannot migrate', async () => {
    await suite.cordon('n1');
    await suite.start('vm');
    assert.equal((await suite.migrate('vm')).status, 202);
    const again = await suite.migrate('vm');
    assert.equal(again.status, 422);
    const inFlight = /in-flight migration detected\. Active migration job \(kubevirt-migrate-vm-/;
    assert.match(again.body.message ?? '', inFlight);
    const devices = { hostDevices: [{ name: 'd', deviceName: 'devices.kubevirt.io/tun' }] };
    const { pod } = await suite.start('tied', 2, devices);
    const refused = await suite.migrate('tied');
    assert.match(refused.body.message ?? '', /Cannot migrate VMI, Reason: HostDeviceNotLiveMigratable/);
    assert.match((await suite.evict(pod)).body.message ?? '', /is not live-migratable$/);
    assert.equal((await suite.migrate('missing')).status, 404);
  });

  it('a failed migration leaves the VM where it is, and a drain tries again after a while', async () => {
    const { node, pod } = await suite.start('vm');
    await suite.cordon(node === 'n1' ? 'n2' : 'n1');
    await suite.evict(pod);
    const target = await until('the target waits', () => suite.launchers('vm').find(({ spec }) => !spec.nodeName));
    await suite.client.delete(PODS, target);
    await until('the migration has failed', () => suite.migrations().some(({ status }) => status?.phase === 'Failed'));
    assert.match(suite.migrations().map(failure).join(), /target pod is gone/);
    const next = await until('another one is pending', () =>
      suite.migrations().find(({ status }) => status?.phase === 'Pending'),
    );
    assert.ok(next.metadata.annotations?.['kubevirt.io/evacuationMigration'] === node);
    assert.deepEqual([suite.vmi('vm')?.status?.nodeName, suite.launchers('vm').length], [node, 1]);
  });

  needs('kubectl');
  it('kubectl drain empties a node', async () => {
    await suite.cordon('n2');
    const first = await suite.start('a');
    await suite.start('b');
    await suite.cordon('n2', false);
    const args = ['--kubeconfig', await suite.kubeconfig(), '--cache-dir', join(suite.temp(), 'cache')];
    const drain = ['drain', first.node, '--ignore-daemonsets', '--timeout=60s'];
    const { stdout } = await promisify(execFile)(pathOf('kubectl'), [...args, ...drain]);
    assert.match(stdout, /cordoned.*evicting pod default\/virt-launcher-a.* drained/s);
    const nodes = ['a', 'b'].map((name) => suite.vmi(name)?.status?.nodeName);
    const isCordoned = suite.client.get(NODES, undefined, first.node)?.spec?.unschedulable;
    assert.deepEqual([nodes.includes(first.node), isCordoned], [false, true]);
    const left = suite.client.list(PODS).filter(({ spec }) => spec.nodeName === first.node);
    assert.deepEqual(left, []);
  });
});

describe('sandbox: migrations that take time', () => {
  const suite = useSandbox(['n1', 'n2', 'n3'], { copySeconds: 3600, unschedulableSeconds: 3 });
  const copying = () => suite.migrations().filter(({ status }) => status?.phase === 'Running');

  it('a cancelled one ends without its target, and the VM stays', async () => {
    const { node } = await suite.start('vm');
    await suite.migrate('vm');
    const [migration] = await until('it copies', () => (copying().length === 1 ? copying() : undefined));
    assert.equal(suite.launchers('vm').length, 2);
    assert.equal(suite.vmi('vm')?.status?.migrationState?.migrationUid, migration?.metadata.uid);
    assert.equal(Object.keys(suite.vmi('vm')?.status?.activePods ?? {}).length, 2);
    assert.equal((await suite.call('DELETE', `${LIST}/${migration?.metadata.name}`)).status, 200);
    await until('the migration is gone', () => suite.migrations().length === 0);
    await until('its target is gone', () => suite.launchers('vm').length === 1);
    const { nodeName, phase, migrationState } = suite.vmi('vm')?.status ?? {};
    assert.deepEqual([nodeName, phase, migrationState?.abortStatus], [node, 'Running', 'Succeeded']);
  });

  it('an eviction of the target is denied, and its loss makes the migration fail', async () => {
    const { node } = await suite.start('vm');
    await suite.migrate('vm');
    await until('it copies', () => copying().length === 1);
    const target = suite.launchers('vm').find(({ spec }) => spec.nodeName !== node)!;
    assert.match((await suite.evict(target)).body.message ?? '', /Eviction request for target Pod$/);
    await suite.client.delete(PODS, target);
    await until('the migration has failed', () => suite.migrations()[0]?.status?.phase === 'Failed');
    assert.equal(suite.vmi('vm')?.status?.migrationState?.failed, true);
    assert.equal(suite.vmi('vm')?.status?.nodeName, node);
  });

  it('two leave a node at a time; a third one waits for one of them', async () => {
    await suite.cordon('n2');
    await suite.cordon('n3');
    const names = ['a', 'b', 'c'];
    for (const name of names) await suite.start(name, 1);
    for (const name of ['n2', 'n3']) await suite.cordon(name, false);
    for (const name of names) await suite.migrate(name);
    await until('two copy', () => copying().length === 2);
    const phases = () => suite.migrations().map(({ status }) => status?.phase);
    assert.deepEqual(phases().sort(), ['Pending', 'Running', 'Running']);
    await suite.call('DELETE', `${LIST}/${copying()[0]?.metadata.name}`);
    await until('the third one copies', () => phases().length === 2 && copying().length === 2);
  });

  it('a target that finds no node makes its migration fail after a while', async () => {
    const { node } = await suite.start('vm');
    for (const name of ['n1', 'n2', 'n3']) if (name !== node) await suite.cordon(name);
    await suite.migrate('vm');
    const waits = await suite.untilWaiting('vm');
    const why = /: 1 node\(s\) didn't match pod anti-affinity rules, 2 node\(s\) were unschedulable\./;
    assert.match(waits.status?.conditions?.[0]?.message ?? '', why);
    await until('the migration has failed', () => suite.migrations()[0]?.status?.phase === 'Failed');
    assert.match(failure(suite.migrations()[0]!) ?? '', /unschedulable for too long/);
    assert.equal(suite.launchers('vm').length, 1);
  });
});
