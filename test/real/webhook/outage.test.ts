import assert from 'node:assert/strict';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import { needs } from '../../support/parts.ts';
import { until } from '../../support/until.ts';
import type { KubernetesObject } from '../control-plane.ts';
import { callOf } from '../demo/webhook-configurations.ts';
import { freePort } from '../processes.ts';
import { configurations, switchOn } from './installed.ts';
import { type CreatedVmi, type LauncherOptions, launcherFor, virtualMachineInstance } from './objects.ts';
import { installPolicies, type Policies } from './policies-alone.ts';

const DRY = { query: { dryRun: 'All' } };
const NETWORKS = 'k8s.v1.cni.cncf.io/networks';
const ATTACHED = { [NETWORKS]: 'data' };
const WEBHOOKS = {
  mutating: 'launcher.plumbline.dev',
  validating: 'final.plumbline.dev',
} as const;
type Which = keyof typeof WEBHOOKS;

type Launcher = Pick<LauncherOptions, 'annotations' | 'labels' | 'more' | 'sidecars'> & {
  /** Request and limit of compute. */
  readonly cpu?: readonly [request: string, limit: string | undefined];
};
const DEDICATED = ['9', '9'] as const;

/** Nothing can be decided about these, so they start. */
const FREE: [string, Launcher][] = [
  ['a dedicated VM that requests nothing', { cpu: DEDICATED }],
  ['the target of its migration', { cpu: DEDICATED, labels: { 'kubevirt.io/migrationJobUID': 'u' } }],
  ['a VM on the shared pool', { cpu: ['200m', undefined] }],
  ['a VM on the shared pool with a CPU limit', { cpu: ['200m', '2'] }],
  ['one with request and limit, with an exponent', { cpu: ['9e0', '9'], annotations: ATTACHED }],
  ['one with networks and a fraction of a CPU', { cpu: ['1500m', '1500m'], annotations: ATTACHED }],
  [
    'a VM with other annotations',
    { cpu: DEDICATED, annotations: { 'kubevirt.io/note': 'x', 'example.org/cpu-mask': '0' } },
  ],
];

/** Something can be decided about these, so they wait. */
const HELD: [string, Launcher][] = [
  [
    'requests whole cores',
    { cpu: DEDICATED, annotations: { 'kubevirt.io/CPUManagerPolicyBetaOptions': 'full-pcpus-only' } },
  ],
  [
    'requests an even number from KubeVirt',
    { cpu: DEDICATED, annotations: { 'alpha.kubevirt.io/EmulatorThreadCompleteToEvenParity': '' } },
  ],
  ['has a CPU mask', { cpu: ['200m', undefined], annotations: { 'plumbline.dev/cpu-mask': '0' } }],
  ['has a NUMA affinity', { cpu: DEDICATED, annotations: { 'plumbline.dev/numa-affinity': '{}' } }],
  ['has a decision of its own', { cpu: ['200m', undefined], annotations: { 'plumbline.dev/decision': '{}' } }],
  ['has a placement of its own', { cpu: ['200m', undefined], annotations: { 'plumbline.dev/placement': '{}' } }],
  ['requests a network’s device', { cpu: ['200m', undefined], more: { 'physnet.plumbline.dev/east': '1' } }],
  ['requests the tunnel', { cpu: ['200m', undefined], more: { 'plumbline.dev/tunnel': '1' } }],
];

/** A configuration that applies to one namespace. */
function onlyFor(namespace: string, { webhooks, ...rest }: KubernetesObject): KubernetesObject {
  const key = 'kubernetes.io/metadata.name';
  const namespaceSelector = { matchExpressions: [{ key, operator: 'In', values: [namespace] }] };
  const limited = (webhooks as object[]).map((webhook) => ({ ...webhook, namespaceSelector }));
  return { ...rest, metadata: { ...rest.metadata, name: `${rest.metadata.name}-${namespace}` }, webhooks: limited };
}

describe('while the webhook is down, on a real API server', function () {
  needs('controlPlane');
  needs('kubectl');
  this.timeout(300_000);
  let installed: Policies;
  before(async () => {
    installed = await installPolicies({});
    const { plane } = installed;
    const { cert } = createCertificateAuthority('plumbline-webhook');
    const port = await freePort();
    await switchOn(plane);
    for (const [suffix, components] of [
      ['', []],
      ['-all', ['components/align-all']],
    ] as const) {
      for (const one of configurations(components)) {
        if (one.metadata.name !== 'plumbline-webhook') continue;
        const namespace = `${one.kind.replace('WebhookConfiguration', '').toLowerCase()}${suffix}`;
        await plane.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
        await plane.create(onlyFor(namespace, callOf(one, port, cert)));
        const asks = HELD[0]![1];
        await until('the webhook to be called', () => isFree(namespace, asks).then((free) => !free));
      }
    }
  });
  after(() => installed?.stop());

  /** Whether it is admitted; otherwise it must have waited for the webhook. */
  async function isFree(namespace: string, { cpu: [request, limit] = DEDICATED, more = {}, ...launcher }: Launcher) {
    const found = virtualMachineInstance('vm', { namespace });
    const vmi = { ...found, metadata: { ...found.metadata, uid: 'u' } } as CreatedVmi;
    const pod = launcherFor(vmi, { cpu: request, ...launcher });
    const [compute] = pod.spec.containers;
    const memory = '1Gi';
    const limits = limit === undefined ? more : { cpu: limit, memory, ...more };
    const containers = [{ ...compute, resources: { requests: { cpu: request, memory, ...more }, limits } }];
    try {
      await installed.client.create(
        `/api/v1/namespaces/${namespace}/pods`,
        { ...pod, spec: { ...pod.spec, containers } },
        DRY,
      );
      return true;
    } catch (error) {
      const which = namespace.split('-')[0] as Which;
      assert.match((error as Error).message, new RegExp(`failed calling webhook "${WEBHOOKS[which]}"`));
      return false;
    }
  }

  for (const which of Object.keys(WEBHOOKS) as Which[]) {
    describe(`${WEBHOOKS[which]}, by default`, () => {
      for (const [what, launcher] of FREE) {
        it(`starts: ${what}`, async () => assert.equal(await isFree(which, launcher), true));
      }
      for (const [what, launcher] of HELD) {
        it(`waits: one that ${what}`, async () => assert.equal(await isFree(which, launcher), false));
      }
    });

    describe(`${WEBHOOKS[which]}, with every launcher aligned`, () => {
      for (const [what, launcher] of FREE) {
        const limited = launcher.cpu?.[1] !== undefined;
        it(`${limited ? 'waits' : 'starts'}: ${what}`, async () =>
          assert.equal(await isFree(`${which}-all`, launcher), !limited));
      }
      for (const [what, launcher] of HELD) {
        it(`waits: one that ${what}`, async () => assert.equal(await isFree(`${which}-all`, launcher), false));
      }
    });
  }
});
