import assert from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { BREAK_GLASS, inSystem } from '../../../cli/doctor/checks/finding.ts';
import { readFindings } from '../../../cli/doctor/run.ts';
import { addAnnotation, type Command, commandText, kubectl as kubectlCommand } from '../../../diagnosis/remedies.ts';
import { loadKubeconfig } from '../../../kube/kubeconfig.ts';
import { NODE_TOPOLOGY_API } from '../../../kube/node-topology.ts';
import { NAMESPACE, SCHEDULER, SCHEDULER_WEBHOOK, WEBHOOK, WEBHOOK_REQUIRED } from '../../../model/names.ts';
import { root } from '../../support/bundles.ts';
import { tempDirectories } from '../../support/files.ts';
import { runLine } from '../../support/run-program.ts';
import { type KubernetesObject, onControlPlane, startControlPlane } from '../control-plane-stage.ts';
import { DEFINITIONS } from './foreign-definitions-fixture.ts';
import { kubectlEnvironment } from './rendered-fixture.ts';
import { kubectl, type Place, WAYS } from './ways-fixture.ts';

const deletes = (...args: readonly string[]) => ['delete', ...args];
const withoutWebhook = JSON.stringify({ webhooks: [{ name: SCHEDULER_WEBHOOK, $patch: 'delete' }] });
const BREAKS: readonly [name: string, kubectl: readonly string[], finding: RegExp][] = [
  ...['Mutating', 'Validating'].map((kind): [string, string[], RegExp] => [
    `no ${kind}WebhookConfiguration`,
    deletes(`${kind}WebhookConfiguration`, WEBHOOK),
    new RegExp(`^there is no ${kind}WebhookConfiguration`),
  ]),
  ['no RoleBinding for the webhooks', inPlace('rolebinding', WEBHOOK_REQUIRED), /^the webhooks are switched off/],
  ['no scheduler', inPlace('deployment', SCHEDULER), /^the Deployment plumbline-scheduler is not installed/],
  [
    `no ${SCHEDULER_WEBHOOK}`,
    // By name: the order of the webhooks is the manifest's.
    ['patch', 'mutatingwebhookconfiguration', WEBHOOK, '--type=strategic', '-p', withoutWebhook],
    /has no webhook scheduler\.plumbline\.dev/,
  ],
  ['no definition', deletes('crd', 'nodetopologies.plumbline.dev'), /^the cluster has no NodeTopology resource/],
];

function inPlace(kind: string, name: string): string[] {
  return deletes('-n', NAMESPACE, kind, name);
}

const VM = { namespace: 'default', name: 'vm', kind: 'vm' } as const;

const SUBJECTS: readonly KubernetesObject[] = [
  { apiVersion: 'v1', kind: 'Node', metadata: { name: 'worker' }, spec: { unschedulable: true } },
  { apiVersion: NODE_TOPOLOGY_API.apiVersion, kind: NODE_TOPOLOGY_API.kind, metadata: { name: 'gone' } },
  {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { namespace: VM.namespace, name: VM.name },
    spec: { runStrategy: 'Halted', template: { spec: { domain: {} } } },
  },
];

const CHANGING: readonly { readonly command: Command; readonly object: string }[] = [
  { command: inSystem('rollout', 'restart', `deployment/${WEBHOOK}`), object: `Deployment ${NAMESPACE}/${WEBHOOK}` },
  { command: kubectlCommand('uncordon', 'worker'), object: 'Node /worker' },
  { command: kubectlCommand('delete', 'nodetopology', 'gone'), object: 'NodeTopology /gone' },
  {
    command: addAnnotation('opt in', VM).commands[0] ?? assert.fail('no command'),
    object: `VirtualMachine ${VM.namespace}/${VM.name}`,
  },
  {
    command: BREAK_GLASS.commands[0] ?? assert.fail('no command'),
    object: `RoleBinding ${NAMESPACE}/${WEBHOOK_REQUIRED}`,
  },
];

function differences(before: Record<string, unknown>, after: Record<string, unknown>): string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].filter((name) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
}

function imagesOf(contents: Record<string, unknown>): string[] {
  const found = new Set<string>();
  JSON.stringify(contents, (key, value: unknown) => {
    if (key === 'image' && typeof value === 'string') found.add(value);
    return value;
  });
  return [...found].sort();
}

/** Fields that the API server sets, and those that change all the time. */
const VOLATILE = new Set(['uid', 'resourceVersion', 'creationTimestamp', 'managedFields', 'generation', 'status']);
const SKIPPED = /^(?:events|leases|endpoints|endpointslices|componentstatuses)\b/;

function contentsOf(place: Place): Record<string, unknown> {
  const kinds = kubectl(place, ['api-resources', '--verbs=list', '-o', 'name']).trim().split('\n');
  const listed = kinds.filter((kind) => !SKIPPED.test(kind)).join();
  const { items } = JSON.parse(kubectl(place, ['get', listed, '--all-namespaces', '-o', 'json'])) as {
    items: { kind: string; metadata: { namespace?: string; name: string } }[];
  };
  const strip = (key: string, value: unknown) => (VOLATILE.has(key) ? undefined : value);
  const entries = items.map((item) => {
    const { kind, metadata } = item;
    const content: unknown = JSON.parse(JSON.stringify(item, strip));
    return [`${kind} ${metadata.namespace ?? ''}/${metadata.name}`, content] as const;
  });
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
}

for (const way of WAYS) {
  describe(`what doctor and explain print, on a cluster with ${way.name}`, function () {
    onControlPlane(this);
    this.timeout(600_000);
    const temp = tempDirectories();
    let place: Place;
    let images: readonly string[];

    before(async () => {
      const directory = temp();
      mkdirSync(join(directory, 'bin'));
      const plane = await startControlPlane();
      const env = kubectlEnvironment(plane.adminKubeconfig);
      place = { plane, directory, env: { ...env, PATH: `${directory}/bin:${env['PATH']}` } };
      await plane.create(...DEFINITIONS);
      way.install(place);
      // What an operator and cert-manager change later.
      const caBundle = Buffer.from(plane.ca).toString('base64');
      for (const kind of ['mutating', 'validating']) injectCa(place, `${kind}webhookconfiguration`, caBundle);
      kubectl(place, ['annotate', 'namespace', NAMESPACE, 'example.com/team=network']);
      const proxy = ['set', 'env', 'daemonset/plumbline-node-agent', 'HTTPS_PROXY=http://proxy:3128'];
      kubectl(place, ['-n', NAMESPACE, ...proxy]);
      images = imagesOf(contentsOf(place));
      assert.ok(images.length >= 4, images.join());
    });
    after(() => place?.plane.stop());

    for (const [name, inflict, finding] of BREAKS) {
      it(`${name}: restored, and nothing else changes`, async () => {
        const before = contentsOf(place);
        kubectl(place, inflict);
        const { fix } = await findingOf(place, finding);
        const [command] = fix.commands.filter(({ program, args }) => program !== 'kubectl' || args.includes('apply'));
        assert.ok(command, 'a command restores it');
        const text = commandText(command);
        assert.match(text, way.fix);
        const ran = await runLine(way.translate?.(text, place) ?? text, { env: place.env, cwd: way.folder(place) });
        // Atomic fields of another field manager, which have defaults that no manifest contains.
        const failures = ran.output.split('\n').filter((line) => /error|failed/i.test(line));
        assert.deepEqual(
          failures.filter((line) => !way.conflicts?.test(line)),
          [],
        );
        if (way.conflicts === undefined) assert.equal(ran.status, 0, ran.output);
        assert.deepEqual(withoutOthers(contentsOf(place)), withoutOthers(before));
      });
    }

    it('each other command that changes something changes one object', async () => {
      await place.plane.create(...SUBJECTS);
      for (const { command, object } of CHANGING) {
        const before = contentsOf(place);
        const text = commandText(command);
        const ran = await runLine(text, { env: place.env, cwd: root });
        assert.equal(ran.status, 0, `${text}: ${ran.output}`);
        assert.deepEqual(differences(before, contentsOf(place)), [object], text);
      }
    });

    it('no image, and so no version, has changed', () => assert.deepEqual(imagesOf(contentsOf(place)), images));
  });
}

function injectCa(place: Place, kind: string, caBundle: string): void {
  const { webhooks } = JSON.parse(kubectl(place, ['get', kind, WEBHOOK, '-o', 'json'])) as {
    webhooks: readonly { readonly name: string }[];
  };
  const patch = { webhooks: webhooks.map(({ name }) => ({ name, clientConfig: { caBundle } })) };
  kubectl(place, ['patch', kind, WEBHOOK, '--field-manager=cainjector', '-p', JSON.stringify(patch)]);
}

/** What others add again: cert-manager the CA bundle of a configuration, Helm its annotations at the next upgrade. */
function withoutOthers(contents: Record<string, unknown>): unknown {
  const kept = (key: string, value: unknown) =>
    key === 'caBundle' || key.startsWith('meta.helm.sh/') || (key === 'annotations' && isOnlyHelms(value))
      ? undefined
      : value;
  return JSON.parse(JSON.stringify(contents, kept));
}

const isOnlyHelms = (annotations: unknown): boolean =>
  Object.keys(annotations as object).every((key) => key.startsWith('meta.helm.sh/'));

async function findingOf({ plane }: Place, pattern: RegExp) {
  const { config } = loadKubeconfig([plane.adminKubeconfig]);
  const cluster = { client: plane.client, config, namespace: 'default', clusterText: '' };
  const { findings } = await readFindings(cluster, Date.now());
  const found = findings.find(({ what, consequences = [] }) =>
    [what, ...consequences].some((text) => pattern.test(text)),
  );
  return found ?? assert.fail(`not found: ${findings.map(({ what }) => what).join('\n')}`);
}
