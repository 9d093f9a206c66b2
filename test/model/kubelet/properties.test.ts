import assert from 'node:assert/strict';
import fc from 'fast-check';
import { CpuSet } from '../../../model/cpu-set.ts';
import { type Host, wholeCoresTouching } from '../../../model/host.ts';
import type { Admission } from '../../../model/kubelet/admission.ts';
import type { DevicePool } from '../../../model/kubelet/devices.ts';
import { createKubelet, type Kubelet } from '../../../model/kubelet/kubelet.ts';
import type { PodRequest } from '../../../model/kubelet/pod-request.ts';
import { cpusOf, type KubeletState } from '../../../model/kubelet/state.ts';
import { hostOf, policies, shapes } from './arbitraries.ts';
import { admitPlain, type PlainHost, type PlainVerdict } from './set-based.ts';

interface Step {
  /** Containers of the pod to admit: CPUs, whether it is an init container, and the NUMA nodes of its NIC, if any. */
  readonly containers: readonly { readonly cpus: number; readonly init: boolean; readonly nic: readonly number[] }[];
  /** Removes the n-th existing pod before the admission. */
  readonly remove: number | null;
}

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.record({
    containers: fc.array(
      fc.record({
        cpus: fc.nat(6),
        init: fc.boolean(),
        nic: fc.uniqueArray(fc.nat(3), { maxLength: 2 }),
      }),
      { minLength: 1, maxLength: 3 },
    ),
    remove: fc.option(fc.nat(5)),
  }),
  { minLength: 1, maxLength: 6 },
);

const scenario = fc.record({
  shape: shapes(16),
  policy: policies,
  reserved: fc.nat(2),
  fullPcpusOnly: fc.boolean(),
  preferUncore: fc.boolean(),
  version: fc.constantFrom('v1.35.0', 'v1.36.0'),
  steps,
});

/** The kubelet admits init containers first. */
function requestOf(uid: string, host: Host, { containers }: Step): PodRequest {
  const ordered = [...containers].sort((a, b) => Number(b.init) - Number(a.init));
  return {
    uid,
    guaranteed: true,
    containers: ordered.map(({ cpus, init, nic }, index) => {
      const known = nic.filter((cell) => host.cells.some(({ id }) => id === cell));
      return {
        name: `c${index}`,
        kind: init ? 'init' : 'app',
        cpus,
        devices: new Map(known.length > 0 ? [[nicName(known), 1]] : []),
        memory: new Map(),
      };
    }),
  };
}

function nicName(cells: readonly number[]): string {
  return `nic/${[...cells].sort().join('-')}`;
}

function nicCells(name: string): number[] {
  return name.slice('nic/'.length).split('-').map(Number);
}

function poolsOf(requests: readonly PodRequest[]): Map<string, DevicePool> {
  const names = requests.flatMap(({ containers }) => containers.flatMap(({ devices }) => [...devices.keys()]));
  return new Map(
    names.map((name) => [name, { devices: [{ id: '0', healthy: true, nodes: nicCells(name) }], endless: true }]),
  );
}

function plainHost(
  host: Host,
  reserved: CpuSet,
  { policy, fullPcpusOnly, preferUncore, version }: Scenario,
): PlainHost {
  return {
    cpus: new Map(host.cpus.map((cpu) => [cpu.id, cpu])),
    reserved: new Set(reserved),
    policy,
    fullPcpusOnly,
    preferUncore,
    wideDeviceHints: version === 'v1.35.0',
  };
}

type Scenario = typeof scenario extends fc.Arbitrary<infer T> ? T : never;

function kubeletOf(host: Host, reserved: CpuSet, { policy, fullPcpusOnly, preferUncore, version }: Scenario): Kubelet {
  const kubelet = createKubelet({
    version,
    host,
    cpuManager: {
      policy: 'static',
      options: { 'full-pcpus-only': `${fullPcpusOnly}`, 'prefer-align-cpus-by-uncorecache': `${preferUncore}` },
    },
    topologyManager: { policy },
    reserved,
  });
  if ('unpredictable' in kubelet) throw new Error(kubelet.unpredictable);
  return kubelet;
}

function answerOf(admission: Admission): string {
  return admission.admitted ? admission.containers.map(({ cpus }) => `${cpus}`).join('; ') : admission.reason;
}

function plainAnswer(verdict: PlainVerdict): string {
  return typeof verdict === 'string' ? verdict : verdict.cpus.map((cpus) => `${CpuSet.of(cpus)}`).join('; ');
}

function checkAdmitted(host: Host, scene: Scenario, before: KubeletState, admission: Admission, reserved: CpuSet) {
  if (!admission.admitted) return;
  const owned = cpusOf(before.assignments);
  for (const { cpus, hint } of admission.containers) {
    assert.ok(!cpus.intersects(owned), 'disjoint from what others hold');
    assert.ok(!cpus.intersects(reserved), 'never reserved CPUs');
    assert.ok(cpus.isSubsetOf(host.online));
    const splits = !wholeCoresTouching(host, reserved).equals(reserved);
    if (scene.fullPcpusOnly && !splits) assert.ok(wholeCoresTouching(host, cpus).equals(cpus), 'whole cores');
    if (scene.policy === 'single-numa-node' && hint?.length === 1 && !cpus.isEmpty) {
      assert.ok(cpus.isSubsetOf(host.cells.find(({ id }) => id === hint[0])?.cpus ?? CpuSet.EMPTY), 'inside its cell');
    }
  }
  assert.ok(
    !admission.state.defaultSet.intersects(cpusOf(admission.state.assignments)),
    'given CPUs have left the pool',
  );
  assert.ok(
    admission.state.defaultSet.union(cpusOf(admission.state.assignments)).equals(host.online),
    'no CPU is lost',
  );
}

describe('model/kubelet: properties', () => {
  it('10,000 random sequences match the Set-based oracle, are sound, and are undone by removal', function () {
    this.timeout(600_000);
    const seen = { admitted: 0, refused: 0 };
    fc.assert(
      fc.property(scenario, (scene) => {
        const host = hostOf(scene.shape);
        const reserved = CpuSet.of(host.cpus.slice(0, scene.reserved).map(({ id }) => id));
        const kubelet = kubeletOf(host, reserved, scene);
        const plain = plainHost(host, reserved, scene);
        const requests = scene.steps.map((step, index) => requestOf(`pod${index}`, host, step));
        const start = kubelet.initialState(poolsOf(requests));
        let state = start;
        const present: string[] = [];
        scene.steps.forEach(({ remove }, index) => {
          if (remove !== null && present.length > 0) {
            const [gone] = present.splice(remove % present.length, 1);
            state = kubelet.remove(state, gone ?? '');
          }
          const request = requests[index]!;
          const admission = kubelet.admit(state, request);
          const oracle = admitPlain(
            plain,
            new Set(state.defaultSet),
            request.containers.map(({ cpus, kind, devices }) => ({
              cpus,
              init: kind === 'init',
              devices: [...devices.keys()].map(nicCells),
            })),
          );
          assert.equal(answerOf(admission), plainAnswer(oracle));
          checkAdmitted(host, scene, state, admission, reserved);
          if (!admission.admitted) {
            seen.refused++;
            return;
          }
          seen.admitted++;
          assert.ok(
            kubelet.remove(admission.state, request.uid).defaultSet.equals(state.defaultSet),
            'removing restores',
          );
          present.push(request.uid);
          state = admission.state;
        });
        for (const uid of present) state = kubelet.remove(state, uid);
        assert.ok(state.defaultSet.equals(start.defaultSet));
        assert.equal(state.assignments.size, 0);
        assert.equal(state.devices.size, 0);
      }),
      { numRuns: 10_000 },
    );
    assert.ok(seen.admitted > 1000 && seen.refused > 1000, `a fair share of both: ${JSON.stringify(seen)}`);
  });

  it('without hints, whole cores are assigned exactly if enough are free (brute force)', () => {
    fc.assert(
      fc.property(shapes(16), fc.nat(0xffff), fc.nat(16), (shape, busyBits, count) => {
        const host = hostOf(shape);
        const busy = CpuSet.fromWords(Uint32Array.of(busyBits)).intersect(host.online);
        const kubelet = kubeletOf(host, CpuSet.EMPTY, {
          policy: 'none',
          fullPcpusOnly: true,
          preferUncore: false,
          version: 'v1.36.0',
        } as Scenario);
        // Under full-pcpus-only, every container with CPUs has whole cores.
        const held = wholeCoresTouching(host, busy);
        const state = kubelet.initialState(new Map(), new Map([['other', new Map([['c', held]])]]));
        const request: PodRequest = {
          uid: 'new',
          guaranteed: true,
          containers: [{ name: 'c', kind: 'app', cpus: count, devices: new Map(), memory: new Map() }],
        };
        const expected = count % shape.threads === 0 && someSubset(host, host.online.minus(held), count);
        assert.equal(kubelet.admit(state, request).admitted, expected);
      }),
      { numRuns: 500 },
    );
  });
});

/** Whether a set of free cores has this number of threads: tries every set. */
function someSubset(host: Host, free: CpuSet, count: number): boolean {
  const cores = host.cores.filter((core) => core.isSubsetOf(free));
  for (let chosen = 0; chosen < 2 ** cores.length; chosen++) {
    const size = cores.reduce((sum, core, index) => ((chosen & (1 << index)) === 0 ? sum : sum + core.size), 0);
    if (size === count) return true;
  }
  return false;
}
