import assert from 'node:assert/strict';
import { CpuSet } from '../../../model/cpu-set.ts';
import { createVmValidation } from '../../../webhook/vms/validate-vm.ts';
import { denialOf, kindOf, localnet, optionsOf, overlay, requestFor, viewOf } from '../launcher-fixture.ts';

const FULL = { 'kubevirt.io/CPUManagerPolicyBetaOptions': 'full-pcpus-only' };
const PARITY = { 'alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity': '' };
const AFFINITY = 'plumbline.dev/numa-affinity';
const MASK = 'plumbline.dev/cpu-mask';
const START = 'plumbline.dev/cpu-mask-start';
const FIX = 'plumbline.dev/fix-cpu-mismatch';
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
  readonly instancetype?: boolean;
  readonly deleting?: boolean;
}

type Kind = 'VirtualMachine' | 'VirtualMachineInstance' | 'VirtualMachineInstanceReplicaSet' | 'VirtualMachinePool';

function objectOf(kind: Kind, template: Template): object {
  const {
    annotations = {},
    cpu = isolated,
    networks = [],
    spec: more = {},
    outer = {},
    instancetype = false,
    deleting = false,
  } = template;
  const spec = { domain: { cpu }, networks, ...more };
  const made = { metadata: { annotations }, spec };
  const metadata = {
    name: 'vm',
    annotations: outer,
    ...(deleting ? { deletionTimestamp: '2026-09-01T08:00:00Z' } : {}),
  };
  const machine = { template: made, ...(instancetype ? { instancetype: { name: 'u1.large' } } : {}) };
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
    if (name === 'gone') return undefined;
    if (name === 'refused') return { ...localnet('east'), refusal: { by: 'OVN-Kubernetes', why: 'the name is bad' } };
    return name === 'overlay' ? overlay(name) : localnet(name);
  },
  maskHosts: () => [{ online: CpuSet.range(0, 7), usable: CpuSet.range(0, 7) }],
});

async function validate(template: Template, old?: Template, kind: Kind = 'VirtualMachine', gate = true) {
  const answer = await createVmValidation(optionsOf({ view, gate }))(
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
  const cases: readonly (readonly [
    name: string,
    vm: Template,
    says: RegExp | undefined,
    old?: Template | undefined,
    gate?: boolean,
  ])[] = [
    ['a VM without faults', { annotations: FULL, networks: [net('east')] }, undefined],
    [
      'required physnets on different NUMA nodes',
      { networks: [net('a', 'east'), net('b', 'west')] },
      /the required networks have no common NUMA node .*a \(physnet east\), b \(physnet west\)/,
    ],
    ['a physnet that no node reports', { networks: [net('a', 'north')] }, /no node reports the physnet north/],
    [
      'a network that does not exist',
      { networks: [net('a', 'gone')] },
      /there is no NetworkAttachmentDefinition telco-east\/gone/,
    ],
    [
      'an affinity of an interface that does not exist',
      { annotations: { [AFFINITY]: '{"eat":"none"}' }, networks: [net('east')] },
      /names "eat", which is no interface or network of this VM \(it has: east\)/,
    ],
    [
      'an unknown value of the annotation',
      { annotations: { 'kubevirt.io/CPUManagerPolicyBetaOptions': 'full' } },
      /unknown value "full"/,
    ],
    [
      'no isolateEmulatorThread',
      { annotations: FULL, cpu: { ...isolated, isolateEmulatorThread: false } },
      /no effect: the VM has no isolateEmulatorThread/,
    ],
    ['no dedicated CPUs', { annotations: FULL, cpu: { cores: 2 } }, /no effect: the VM has no dedicatedCpuPlacement/],
    ['a VM whose CPUs an instancetype sets', { annotations: FULL, cpu: {}, instancetype: true }, undefined],
    [
      'a network that OVN-Kubernetes refuses',
      { annotations: FULL, networks: [net('a', 'refused')] },
      /^interface a: OVN-Kubernetes refuses telco-east\/refused, so the VM does not start: the name is bad$/,
    ],
    ['a feature gate that is off', { annotations: FULL }, /FullPCPUsOnly is off/, undefined, false],
    [
      'an annotation outside the template',
      { outer: FULL },
      /no effect here: put it into spec\.template\.metadata\.annotations/,
    ],
    [
      'an unknown value of the fix',
      { annotations: { [MASK]: '0', [FIX]: 'yes' }, cpu: { cores: 2 } },
      /unknown value "yes" and counts as false/,
    ],
    [
      'a mask with a liveness probe',
      { annotations: { [MASK]: '0' }, cpu: { cores: 2 }, spec: { livenessProbe: { tcpSocket: { port: 22 } } } },
      /with a liveness probe the VM cannot start paused, so it runs for a moment before its vCPUs are pinned/,
    ],
    [
      'an unknown kind of start',
      { annotations: { [MASK]: '0', [START]: 'later' }, cpu: { cores: 2 } },
      /cpu-mask-start has the unknown value "later" and counts as paused: expected running or paused/,
    ],
    [
      'a kind of start without a mask',
      { annotations: { [START]: 'running' } },
      /cpu-mask-start has no effect without plumbline\.dev\/cpu-mask/,
    ],
    ['a fix without a mask', { annotations: { [FIX]: 'true' } }, /no effect without plumbline\.dev\/cpu-mask/],
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
  for (const [name, vm, says, old, gate = true] of cases) {
    it(`${says === undefined ? 'none for' : 'for'} ${name}`, async () => {
      const answer = await validate(vm, old, 'VirtualMachine', gate);
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
    ['a mask and vCPUs that change together', shared(3, '0:1:2'), undefined, shared(2, '0:1')],
    [
      'an unchanged mask that does not match',
      { ...shared(2, '0:1:2'), outer: { note: 'x' } },
      undefined,
      shared(2, '0:1:2'),
    ],
    ['a VM that is being deleted', { ...shared(3, '0:1'), deleting: true }, undefined, shared(2, '0:1')],
    ['an empty entry', shared(2, '1:'), /entry 2 \(for vCPU 1\) is empty/],
    ['a mask on dedicated CPUs', { annotations: { [MASK]: '0' } }, /dedicatedCpuPlacement are mutually exclusive/],
    ['a count from an instancetype', { ...shared(1, '0:1'), instancetype: true }, undefined],
    ['an affinity that is not JSON', { annotations: { [AFFINITY]: 'required' } }, /it is not JSON/],
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
  const SMT2 = kindOf(2);
  const plain = kindOf(2, { fullPcpusOnly: false });
  const odd = { cores: 3, dedicatedCpuPlacement: true };
  interface Case {
    readonly what: string;
    readonly vm?: Template;
    readonly kinds?: Parameters<typeof viewOf>[0];
    readonly policy?: 'auto' | 'always';
    readonly says?: RegExp;
  }
  const cases: readonly Case[] = [
    {
      what: 'an unannotated VM of 8 vCPUs and an emulator thread',
      says: /asks for 9 CPUs: every node it can go to \(2 threads per core\) rejects it, SMTAlignmentError; annotate/,
    },
    {
      what: 'a VM that other nodes accept',
      kinds: [SMT2, plain],
      says: /asks for 9 CPUs: every full-pcpus-only node \(2 threads/,
    },
    { what: 'nodes of several kinds', kinds: [SMT2, kindOf(4)], says: /\(2 or 4 threads per core\)/ },
    { what: 'no isolated emulator thread', vm: { cpu: odd }, says: /asks for 3 CPUs: .*fill whole cores/ },
    { what: 'an annotated VM', vm: { annotations: FULL } },
    { what: 'a VM with KubeVirt’s own annotation', vm: { annotations: PARITY } },
    { what: 'a policy that aligns every launcher', policy: 'auto' },
    { what: 'a launcher with an even number of CPUs', vm: { cpu: { ...isolated, cores: 7, threads: 1 } } },
    { what: 'another kind of nodes that accepts the VM', kinds: [SMT2, kindOf(1)] },
    { what: 'nodes whose kubelet does not ask for whole cores', kinds: [plain] },
    { what: 'a VM whose CPUs come from an instancetype', vm: { cpu: isolated, instancetype: true } },
    { what: 'a VM that is larger than any host', vm: { cpu: { ...isolated, cores: 2 ** 31, sockets: 2 ** 31 } } },
  ];
  for (const { what, vm = {}, kinds = [SMT2], policy, says } of cases) {
    it(`${says ? 'a warning' : 'none'}: ${what}`, async () => {
      const options = optionsOf({ view: viewOf(kinds), ...(policy && { policy }) });
      const kind = { group: 'kubevirt.io', version: 'v1', kind: 'VirtualMachine' };
      const answer = await createVmValidation(options)(requestFor(objectOf('VirtualMachine', vm), { kind }));
      assert.ok(answer.allowed);
      const found = (answer.warnings ?? []).filter((text) => text.includes('the launcher asks for'));
      for (const text of found) assert.ok(text.length <= 256, `${text.length} characters`);
      if (says) assert.match(found.join(), says);
      else assert.deepEqual(found, []);
    });
  }
});
