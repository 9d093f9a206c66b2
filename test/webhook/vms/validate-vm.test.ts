import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createVmValidation } from '../../../webhook/vms/validate-vm.ts';
import { denialOf, kindOf, localnet, optionsOf, overlay, requestFor, viewOf } from '../launcher-fixture.ts';

const FULL = { 'kubevirt.io/CPUManagerPolicyBetaOptions': 'full-pcpus-only' };
const AFFINITY = 'plumbline.dev/numa-affinity';
const MASK = 'plumbline.dev/cpu-mask';
const isolated = { cores: 4, threads: 2, dedicatedCpuPlacement: true, isolateEmulatorThread: true };
const net = (name: string, networkName = name) => ({ name, multus: { networkName } });

interface Template {
  readonly annotations?: Record<string, string>;
  readonly cpu?: object;
  readonly networks?: object[];
  /** More of the template's spec. */
  readonly spec?: object;
  /** On the VM itself. */
  readonly outer?: Record<string, string>;
  readonly deleting?: boolean;
}

type Kind = 'VirtualMachine' | 'VirtualMachineInstance' | 'VirtualMachineInstanceReplicaSet' | 'VirtualMachinePool';

function objectOf(kind: Kind, template: Template): object {
  const { annotations = {}, cpu = isolated, networks = [], spec: more = {}, outer = {}, deleting = false } = template;
  const spec = { domain: { cpu }, networks, ...more };
  const made = { metadata: { annotations }, spec };
  const metadata = {
    name: 'vm',
    annotations: outer,
    ...(deleting ? { deletionTimestamp: '2026-09-01T08:00:00Z' } : {}),
  };
  const machine = { template: made };
  switch (kind) {
    case 'VirtualMachineInstance':
      return { metadata: { name: 'vm', annotations }, spec };
    case 'VirtualMachinePool':
      return { metadata, spec: { virtualMachineTemplate: { spec: machine } } };
    default:
      return { metadata, spec: machine };
  }
}

const view = viewOf([kindOf(2, { physnets: { east: '0', west: '1', both: '0-1' }, tunnel: '0' })], {
  findNad: ({ name }) => {
    return name === 'overlay' ? overlay(name) : localnet(name);
  },
  maskHosts: () => [{ online: CpuSet.range(0, 7), usable: CpuSet.range(0, 7) }],
});

async function validate(template: Template, old?: Template, kind: Kind = 'VirtualMachine') {
  const answer = await createVmValidation(optionsOf({ view }))(
    requestFor(objectOf(kind, template), {
      kind: { group: 'kubevirt.io', version: 'v1', kind },
      operation: old === undefined ? 'CREATE' : 'UPDATE',
      ...(old === undefined ? {} : { oldObject: objectOf(kind, old) }),
    }),
  );
  for (const warning of answer.warnings ?? []) assert.ok(warning.length <= 256, warning);
  return answer;
}

describe('validation of VMs: warnings', () => {
  const cases: readonly (readonly [name: string, vm: Template, says: RegExp | undefined, old?: Template])[] = [
    ['a VM without faults', { annotations: FULL, networks: [net('east')] }, undefined],
    [
      'required physnets on different NUMA nodes',
      { networks: [net('a', 'east'), net('b', 'west')] },
      /the required networks have no common NUMA node .*a \(physnet east\), b \(physnet west\)/,
    ],
    ['a physnet that no node reports', { networks: [net('a', 'north')] }, /no node reports the physnet north/],
    [
      'an annotation outside the template',
      { outer: FULL },
      /no effect here: put it into spec\.template\.metadata\.annotations/,
    ],
    [
      'a hotplugged NIC',
      { networks: [net('east'), net('both')] },
      /interface both is plugged into a VM .* next migration or restart/,
      { networks: [net('east')] },
    ],
    [
      'a hotplugged NIC without an affinity',
      { annotations: { ...FULL, [AFFINITY]: '{"both":"none"}' }, networks: [net('both')] },
      undefined,
      {},
    ],
    [
      'a fault that an earlier review has warned about',
      { networks: [net('a', 'north')] },
      undefined,
      { networks: [net('a', 'north')] },
    ],
  ];
  for (const [name, vm, says, old] of cases) {
    it(`${says === undefined ? 'none for' : 'for'} ${name}`, async () => {
      const answer = await validate(vm, old);
      assert.ok(answer.allowed);
      const said = (answer.warnings ?? []).join('\n');
      if (says === undefined) assert.equal(said, '');
      else assert.match(said, says);
    });
  }
});

describe('validation of VMs: refusals', () => {
  const shared = (cores: number, mask: string): Template => ({ annotations: { [MASK]: mask }, cpu: { cores } });
  const cases: readonly (readonly [name: string, vm: Template, says: RegExp | undefined, old?: Template])[] = [
    ['a mask for too many vCPUs', shared(2, '0:1:2'), /entries for 3 vCPUs, but the VM has 2/],
    ['vCPUs that change under a mask', shared(3, '0:1'), /entries for 2 vCPUs, but the VM has 3/, shared(2, '0:1')],
    ['a VM that is being deleted', { ...shared(3, '0:1'), deleting: true }, undefined, shared(2, '0:1')],
  ];
  for (const [name, vm, says, old] of cases) {
    it(`${says === undefined ? 'none for' : 'for'} ${name}`, async () => {
      const answer = await validate(vm, old);
      if (says === undefined) assert.ok(answer.allowed, answer.allowed ? '' : answer.message);
      else assert.match(denialOf(answer).message, says);
    });
  }

  const SMALL = [kindOf(2, { physnets: { east: '0' }, rooms: { 0: 6, 1: 8 } })];
  const create = async (
    facts: Parameters<typeof viewOf>[1],
    options: Parameters<typeof optionsOf>[0] = {},
    old?: Template,
  ) => {
    const review = createVmValidation({
      ...optionsOf({ view: viewOf(SMALL, { findNad: () => localnet('east'), ...facts }), ...options }),
      route: { schedulerName: '' },
    });
    const kind = { group: 'kubevirt.io', version: 'v1', kind: 'VirtualMachine' };
    const before =
      old === undefined ? {} : ({ operation: 'UPDATE', oldObject: objectOf('VirtualMachine', old) } as const);
    return review(
      requestFor(objectOf('VirtualMachine', { networks: [net('east')] }), { kind, operation: 'CREATE', ...before }),
    );
  };
  const TOO_LARGE =
    /^(plumbline: )?larger than the NUMA nodes of its networks on every node that it can go to: interface east \(physnet east\) is on NUMA node 0, where pods can have 6 CPUs at most, and it requests 9$/;

  it('refuse a VM that is larger than the NUMA node of its network on every node, with the reason', async () => {
    assert.match(denialOf(await create({})).message, TOO_LARGE);
  });

  it('only warn about such a VM if a node has not reported, if larger nodes may join, and on updates', async () => {
    for (const answer of [
      await create({ allReport: () => false }),
      await create({}, { oversized: 'warn' }),
      await create({}, {}, {}),
    ]) {
      assert.ok(answer.allowed);
      assert.ok(
        answer.warnings?.some((text) => TOO_LARGE.test(text)),
        `${answer.warnings}`,
      );
    }
  });

  for (const kind of ['VirtualMachineInstance', 'VirtualMachineInstanceReplicaSet', 'VirtualMachinePool'] as const) {
    it(`apply to a ${kind} as to a VM`, async () => {
      assert.match(denialOf(await validate(shared(2, '0:1:2'), undefined, kind)).message, /entries for 3 vCPUs/);
      const { warnings } = await validate({ networks: [net('a', 'north')] }, undefined, kind);
      assert.match(warnings?.join() ?? '', /no node reports the physnet north/);
    });
  }

  it('are left to KubeVirt if the object cannot be read', async () => {
    const request = requestFor(
      { metadata: {}, spec: 7 },
      { kind: { group: 'kubevirt.io', version: 'v1', kind: 'VirtualMachine' } },
    );
    const answer = await createVmValidation(optionsOf())(request);
    assert.ok(answer.allowed);
    assert.match(answer.warnings?.[0] ?? '', /has not checked it/);
  });
});

describe('validation of VMs: launchers that every full-pcpus-only node would reject', () => {
  it('a warning: an unannotated VM of 8 vCPUs and an emulator thread', async () => {
    const kind = { group: 'kubevirt.io', version: 'v1', kind: 'VirtualMachine' };
    const answer = await createVmValidation(optionsOf())(requestFor(objectOf('VirtualMachine', {}), { kind }));
    assert.ok(answer.allowed);
    assert.match(
      answer.warnings?.join() ?? '',
      /asks for 9 CPUs: every node it can go to \(2 threads per core\) rejects it, SMTAlignmentError; annotate/,
    );
  });
});
