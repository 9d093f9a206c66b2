import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { EVEN_PARITY_ANNOTATION } from '../../../model/launcher/cpus.ts';
import { FULL_PCPUS_ANNOTATION, FULL_PCPUS_ONLY } from '../../../model/names.ts';
import { createCertificateAuthority } from '../../../sandbox/certificates.ts';
import { root } from '../../support/bundles.ts';
import { deniedByPolicy } from '../../support/denied.ts';
import { freePort } from '../../support/processes.ts';
import { until } from '../../support/until.ts';
import { type KubernetesObject, namespaceOf, onControlPlane, podOf } from '../control-plane-stage.ts';
import { callOf } from '../install/rendered-fixture.ts';
import { configurations, switchOn } from './installed-stage.ts';
import { type CreatedVmi, type LauncherOptions, launcherFor, virtualMachineInstance } from './objects-fixture.ts';
import { installPolicies, type Policies } from './policies-stage.ts';

const run = promisify(execFile);
const NETWORKS = 'k8s.v1.cni.cncf.io/networks';
const ATTACHED = { [NETWORKS]: 'data' };
type Launcher = Pick<LauncherOptions, 'annotations' | 'labels' | 'more'> & {
  readonly cpu?: readonly [request: string, limit: string | undefined];
};
const DEDICATED = ['9', '9'] as const;
const SHARED = ['200m', undefined] as const;
const dedicated = (annotations: Record<string, string>): Launcher => ({ cpu: DEDICATED, annotations });
const shared = (more: Omit<Launcher, 'cpu'> = {}): Launcher => ({ cpu: SHARED, ...more });

/** Nothing can be decided about these, so they start. */
const FREE: [string, Launcher][] = [
  ['a dedicated VM that requests nothing', { cpu: DEDICATED }],
  ['the target of its migration', { cpu: DEDICATED, labels: { 'kubevirt.io/migrationJobUID': 'u' } }],
  ['a VM on the shared pool', shared()],
  ['a VM on the shared pool with a CPU limit', { cpu: ['200m', '2'] }],
  ['one with request and limit, with an exponent', { cpu: ['9e0', '9'], annotations: ATTACHED }],
  ['one with networks and a fraction of a CPU', { cpu: ['1500m', '1500m'], annotations: ATTACHED }],
  ['a VM with other annotations', dedicated({ 'kubevirt.io/note': 'x', 'example.org/cpu-mask': '0' })],
];

/** Something can be decided about these, so they wait. */
const HELD: [string, Launcher][] = [
  ['requests whole cores', dedicated({ [FULL_PCPUS_ANNOTATION]: FULL_PCPUS_ONLY })],
  ['requests an even number from KubeVirt', dedicated({ [EVEN_PARITY_ANNOTATION]: '' })],
  ['has a CPU mask', shared({ annotations: { 'plumbline.dev/cpu-mask': '0' } })],
  ['has a NUMA affinity', dedicated({ 'plumbline.dev/numa-affinity': '{}' })],
  ['has a decision of its own', shared({ annotations: { 'plumbline.dev/decision': '{}' } })],
  ['has a placement of its own', shared({ annotations: { 'plumbline.dev/placement': '{}' } })],
  ['requests a network’s device', shared({ more: { 'physnet.plumbline.dev/east': '1' } })],
  ['requests the tunnel', shared({ more: { 'plumbline.dev/tunnel': '1' } })],
];

function launchersOf(namespace: string, components: readonly string[], port: number, cert: string): KubernetesObject {
  const shipped = configurations(components).find(
    ({ kind, metadata }) => kind === 'MutatingWebhookConfiguration' && metadata.name === 'plumbline-webhook',
  );
  const { webhooks, ...rest } = callOf(shipped!, port, cert);
  const key = 'kubernetes.io/metadata.name';
  const namespaceSelector = { matchExpressions: [{ key, operator: 'In', values: [namespace] }] };
  const limited = (webhooks as object[]).map((webhook) => ({ ...webhook, namespaceSelector }));
  return { ...rest, metadata: { ...rest.metadata, name: `plumbline-webhook-${namespace}` }, webhooks: limited };
}

const PAGE = readFileSync(join(root, 'docs/reference/webhook.md'), 'utf8');
const BREAK_GLASS = PAGE.split('### Break glass')[1]?.split('```sh\n')[1]?.split('```')[0] ?? '';

/** The validating configuration has the same conditions (test/manifests/kustomize). */
describe('while the webhook is down, on a real API server', function () {
  onControlPlane(this);
  let installed: Policies;
  const { cert } = createCertificateAuthority('plumbline-webhook');
  let port = 0;
  before(async () => {
    installed = await installPolicies({});
    const { plane } = installed;
    port = await freePort();
    await switchOn(plane);
    for (const [namespace, components] of [
      ['default-alignment', []],
      ['all-aligned', ['components/align-all']],
    ] as const) {
      await plane.create(namespaceOf(namespace));
      await plane.create(launchersOf(namespace, components, port, cert));
      await until('the webhook to be called', async () => !(await isFree(namespace, HELD[0]![1])));
    }
  });
  after(() => installed?.stop());

  const create = async (namespace: string, pod: object) =>
    installed.client.create(`/api/v1/namespaces/${namespace}/pods`, pod, { query: { dryRun: 'All' } }).then(
      () => 'created',
      (error: Error) => error.message,
    );

  /** Whether it is admitted; otherwise it must have waited for the webhook. */
  async function isFree(namespace: string, { cpu: [request, limit] = DEDICATED, more = {}, ...launcher }: Launcher) {
    const { metadata, ...vmi } = virtualMachineInstance('vm', { namespace });
    const pod = launcherFor({ ...vmi, metadata: { ...metadata, uid: 'u' } } as CreatedVmi, {
      cpu: request,
      ...launcher,
    });
    const [compute] = pod.spec.containers;
    const memory = '1Gi';
    const limits = limit === undefined ? more : { cpu: limit, memory, ...more };
    const containers = [{ ...compute, resources: { requests: { cpu: request, memory, ...more }, limits } }];
    const outcome = await create(namespace, { ...pod, spec: { ...pod.spec, containers } });
    if (outcome !== 'created') assert.match(outcome, /failed calling webhook "launcher\.plumbline\.dev"/);
    return outcome === 'created';
  }

  for (const [what, launcher] of FREE) {
    it(`starts: ${what}`, async () => assert.equal(await isFree('default-alignment', launcher), true));
    const isLimited = launcher.cpu?.[1] !== undefined;
    it(`with every launcher aligned, ${isLimited ? 'waits' : 'starts'}: ${what}`, async () =>
      assert.equal(await isFree('all-aligned', launcher), !isLimited));
  }
  for (const [what, launcher] of HELD) {
    it(`waits: one that ${what}`, async () => assert.equal(await isFree('default-alignment', launcher), false));
  }

  it('breaking glass as in docs/reference/webhook.md lets pods that request something start, while the policies still apply', async () => {
    const [namespace, asks] = ['default-alignment', HELD[0]![1]] as const;
    const { plane } = installed;
    await plane.create(...configurations().map((one) => callOf(one, port, cert)));
    const annotated = (annotations: object) => podOf({ generateName: 'web-', annotations });
    const ordinary = annotated({ 'plumbline.dev/align': 'whole-cores' });
    const thief = annotated({ 'plumbline.dev/decision': '{}' });
    await until('all webhooks to be called', async () =>
      /calling webhook "opt-in/.test(await create(namespace, ordinary)),
    );
    assert.equal(BREAK_GLASS.trim().split('\n').length, 1, 'it is one command');
    await run('sh', ['-ec', BREAK_GLASS], { env: { ...process.env, KUBECONFIG: plane.adminKubeconfig } });
    await until('the launcher to start', () => isFree(namespace, asks));
    assert.equal(await create(namespace, ordinary), 'created');
    assert.match(await create(namespace, thief), deniedByPolicy('plumbline-reserved-names'));
  });
});
