import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { readVmFile } from '../../../cli/simulate/demand.ts';
import { expandVm } from '../../../cli/simulate/instancetypes.ts';
import { prepare } from '../../../cli/simulate/run.ts';
import { hypothetical, inventNodes } from '../../../cli/simulate/scene.ts';
import { simulate } from '../../../cli/simulate/simulate.ts';
import { CliError } from '../../../cli/support/exit-status.ts';
import type { VmiShape } from '../../../model/shapes.ts';
import { tempDirectories } from '../../support/files.ts';
import { createObjectsApi } from '../objects-api-stand-in.ts';

const LARGE = {
  cpu: { guest: 8, dedicatedCPUPlacement: true, isolateEmulatorThread: true },
  memory: { guest: '4Gi', hugepages: { pageSize: '1Gi' } },
  annotations: { 'kubevirt.io/CPUManagerPolicyBetaOptions': 'full-pcpus-only' },
};
const object = (kind: string, name: string, spec: object, namespace?: string) => ({
  apiVersion: 'instancetype.kubevirt.io/v1beta1',
  kind,
  metadata: { name, ...(namespace && { namespace }) },
  spec,
});
const vmWith = (spec: object) => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachine',
  metadata: { name: 'fw', namespace: 'tenants' },
  spec: { ...spec, template: { spec: { domain: {} } } },
});
const invent = (topology: string) =>
  inventNodes({ nodes: 1, topology, physnet: [], topologyManager: 'best-effort', kubelet: 'v1.36.2' });
const scene = hypothetical(invent('2x16x2'));

describe('simulate of VMs with an instancetype', () => {
  const temp = tempDirectories();

  /** Documents of one file, and the demand of its VM. */
  async function demandOf(documents: readonly object[], client?: Parameters<typeof prepare>[3]) {
    const path = join(temp(), 'vms.yaml');
    writeFileSync(path, documents.map((document) => stringify(document)).join('---\n'));
    const { demands, notes } = await prepare([], [readVmFile(path, 'default')], scene, client);
    return { notes, demand: demands[0], threads: demands[0]?.needs.guestThreads };
  }

  const CLUSTER = object('VirtualMachineClusterInstancetype', 'large', LARGE);

  it('takes it from the file: 8 vCPUs and one for the emulator, padded', async () => {
    const { demand, notes } = await demandOf([vmWith({ instancetype: { name: 'large' } }), CLUSTER]);
    assert.deepEqual([demand?.cpus, demand?.padding, notes], [10, 1, []]);
    assert.deepEqual([...(demand?.needs.request.containers[0]?.memory ?? [])], [['hugepages-1Gi', 4 * 2 ** 30]]);
  });

  it('takes it from the cluster, by kind and namespace', async () => {
    const own = object('VirtualMachineInstancetype', 'large', { ...LARGE, cpu: { ...LARGE.cpu, guest: 4 } }, 'tenants');
    const client = createObjectsApi({
      '/apis/instancetype.kubevirt.io/v1beta1/virtualmachineclusterinstancetypes': [CLUSTER],
      '/apis/instancetype.kubevirt.io/v1beta1/virtualmachineinstancetypes': [own],
    });
    const cpusOf = async (kind?: string) =>
      (await demandOf([vmWith({ instancetype: { name: 'large', ...(kind && { kind }) } })], client)).demand?.cpus;
    assert.equal(await cpusOf(), 10);
    assert.equal(await cpusOf('VirtualMachineInstancetype'), 6);
    assert.equal(await cpusOf('virtualmachineinstancetypes'), 6);
  });

  it('applies the preference of the VM', async () => {
    const preference = object('VirtualMachineClusterPreference', 'p', { cpu: { preferredCPUTopology: 'threads' } });
    const vm = vmWith({ instancetype: { name: 'large' }, preference: { name: 'p' } });
    const { threads, demand } = await demandOf([vm, CLUSTER, preference]);
    assert.deepEqual([threads, demand?.cpus], [8, 10]);
  });

  const IN_NO_FILE =
    /its instancetype small \(VirtualMachineClusterinstancetype\) is in no file; add it with -f: kubectl get /i;
  const OF_VOLUME = /inferred from volume root, .*give it a name in spec.instancetype/;
  const LARGE_WITH_X = { instancetype: { name: 'large' }, preference: { name: 'x' } };
  for (const [title, spec, message] of [
    ['one that is in no file', { instancetype: { name: 'small' } }, IN_NO_FILE],
    ['a preference that is in no file', LARGE_WITH_X, /its preference x .* is in no file/],
    ['one that a volume names', { instancetype: { inferFromVolume: 'root' } }, OF_VOLUME],
    ['one without a name', { instancetype: {} }, /is not named/],
  ] as const) {
    it(`says what is missing: ${title}`, async () => {
      const isUsage = (error: unknown) =>
        error instanceof CliError && error.status === 2 && message.test(error.message);
      await assert.rejects(() => demandOf([vmWith(spec), CLUSTER]), isUsage);
    });
  }

  it('says that neither file nor cluster has it', async () => {
    const client = createObjectsApi({});
    const vm = vmWith({ instancetype: { name: 'gone' } });
    await assert.rejects(() => demandOf([vm], client), /neither in a file nor in the cluster/);
  });
});

describe('a VM with an instancetype', () => {
  const EIGHT = { cpu: { guest: 8, dedicatedCPUPlacement: true }, memory: { guest: '4Gi' } };
  const VMI: VmiShape = { metadata: { annotations: { a: 'of the VM' } }, spec: { domain: {} } };
  const expanded = async (vmi: VmiShape, instancetype?: object, preference?: object) => {
    const names = {
      ...(instancetype && { instancetype: { name: 'x' } }),
      ...(preference && { preference: { name: 'x' } }),
    };
    const files = [
      { kind: 'VirtualMachineClusterInstancetype', name: 'x', namespace: '', spec: instancetype },
      { kind: 'VirtualMachineClusterPreference', name: 'x', namespace: '', spec: preference },
    ];
    return (await expandVm({ name: 'fw', namespace: 'tenants', vmi, ...names }, files, undefined)).vmi;
  };

  for (const [topology, spreadOptions, expected] of [
    [undefined, undefined, [8, 1, 1]],
    ['sockets', undefined, [8, 1, 1]],
    ['preferThreads', undefined, [1, 1, 8]],
    ['cores', undefined, [1, 8, 1]],
    ['spread', undefined, [4, 2, 1]],
    ['spread', { ratio: 4 }, [2, 4, 1]],
    ['spread', { across: 'CoresThreads' }, [1, 4, 2]],
    ['spread', { across: 'SocketsCoresThreads' }, [2, 2, 2]],
  ] as const) {
    it(`has ${expected} sockets, cores and threads: ${topology} ${JSON.stringify(spreadOptions ?? {})}`, async () => {
      const preference = { cpu: { preferredCPUTopology: topology, spreadOptions } };
      const { sockets, cores, threads } = (await expanded(VMI, EIGHT, preference)).spec.domain.cpu ?? {};
      assert.deepEqual([sockets, cores, threads], expected);
    });
  }

  it('has one core for one vCPU, whatever is preferred', async () => {
    const single = { ...EIGHT, cpu: { guest: 1 } };
    const { cpu } = (await expanded(VMI, single, { cpu: { preferredCPUTopology: 'threads' } })).spec.domain;
    assert.deepEqual([cpu?.sockets, cpu?.cores, cpu?.threads], [1, 1, 1]);
  });

  it('has its own annotations before those of the instancetype and of the preference', async () => {
    const preference = { annotations: { a: 'preferred', b: 'preferred', c: 'preferred' } };
    const instancetype = { ...EIGHT, annotations: { a: 'of the type', b: 'of the type' } };
    const { annotations } = (await expanded(VMI, instancetype, preference)).metadata;
    assert.deepEqual(annotations, { a: 'of the VM', b: 'of the type', c: 'preferred' });
    const { metadata } = await expanded(VMI, undefined, preference);
    assert.deepEqual(metadata.annotations, { ...preference.annotations, a: 'of the VM' });
  });

  it('has the devices of both', async () => {
    const own = { ...VMI, spec: { domain: { devices: { gpus: [{ deviceName: 'a' }] } } } };
    const { devices } = (await expanded(own, { ...EIGHT, gpus: [{ deviceName: 'b' }] })).spec.domain;
    assert.deepEqual(devices, { gpus: [{ deviceName: 'a' }, { deviceName: 'b' }], hostDevices: [] });
  });
});

describe('simulate of guests with threads', () => {
  const on = (...topologies: readonly string[]) =>
    topologies.flatMap((topology, i) =>
      invent(topology).map((node) => ({ ...node, metadata: { ...node.metadata, name: `n${i}` } })),
    );

  it('prefers nodes with SMT, however full they are', async () => {
    const { demands, targets } = await prepare(['2c2t:1'], [], hypothetical(on('2x16x1', '2x8x2', '2x16x1')));
    assert.deepEqual(Object.keys(simulate(targets.hosts, demands).placements), ['n1']);
  });
});
