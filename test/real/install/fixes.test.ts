import assert from 'node:assert/strict';
import { execFile, execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { stringify } from 'yaml';
import { readFindings } from '../../../cli/doctor/run.ts';
import { commandText } from '../../../diagnosis/remedy.ts';
import { kubeconfigAccess } from '../../../kube/kubeconfig.ts';
import { NAMESPACE, SCHEDULER, SCHEDULER_WEBHOOK, WEBHOOK, WEBHOOK_REQUIRED } from '../../../model/names.ts';
import { root } from '../../support/bundles.ts';
import { pathOf } from '../../support/parts.ts';
import { type ControlPlane, onControlPlane, startControlPlane } from '../control-plane.ts';
import { DEFINITIONS } from './foreign-definitions.ts';
import { kubectlEnvironment, objectsOf } from './rendered.ts';

const REGISTRY = 'registry.example.com/plumbline';
const MINOR = '1.36';
const COMPONENTS = ['base/node-agent/components/gate', 'components/console', `components/kubernetes-${MINOR}`];

interface Place {
  readonly plane: ControlPlane;
  readonly directory: string;
  readonly env: NodeJS.ProcessEnv;
}

/** How a cluster gets Plumbline, and where its operator runs what doctor prints. */
interface Way {
  readonly name: string;
  install(place: Place): void;
  readonly folder: (place: Place) => string;
  /** What the fix of a missing object must be. */
  readonly fix: RegExp;
  /** Replaces what the test has instead of the Internet. */
  readonly translate?: (text: string, place: Place) => string;
}

const kubectl = ({ env }: Pick<Place, 'env'>, args: readonly string[], input?: string): string =>
  execFileSync(pathOf('kubectl'), [...args], {
    env,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
    stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'inherit'],
    ...(input !== undefined && { input }),
  });

const releaseManifest = (...args: readonly string[]): string =>
  execFileSync(join(root, 'packaging/manifest.sh'), [MINOR, ...args], { encoding: 'utf8', maxBuffer: 2 ** 28 });

const applied = (place: Place, yaml: string, manager = 'kubectl') =>
  kubectl(place, ['apply', '--server-side', `--field-manager=${manager}`, '-f', '-'], yaml);

/** A kustomization of an operator: other images, two components, and the version of the cluster. */
function writeKustomization(directory: string): string {
  const folder = join(directory, 'ours');
  mkdirSync(folder, { recursive: true });
  cpSync(join(root, 'manifests'), join(folder, 'manifests'), { recursive: true });
  const images = ['webhook', 'node-agent'].map((name) => {
    return {
      name: `ghcr.io/plumbline-dev/plumbline/plumbline-${name}`,
      newName: `${REGISTRY}/${name}`,
      newTag: 'ours',
    };
  });
  const components = COMPONENTS.map((name) => `manifests/${name}`);
  writeFileSync(
    join(folder, 'kustomization.yaml'),
    stringify({ resources: ['manifests/base'], components, images, replicas: [{ name: WEBHOOK, count: 3 }] }),
  );
  return folder;
}

/**
 * What Helm leaves in a cluster: its own annotations on each object, and the manifest of the release without them. The
 * objects of the chart are those of the manifests (test/manifests/chart.test.ts).
 */
function installAsHelm(place: Place): void {
  const folder = writeKustomization(place.directory);
  const all = objectsOf(kubectl(place, ['kustomize', folder]));
  const isCrd = ({ kind }: { readonly kind: string }) => kind === 'CustomResourceDefinition';
  const isNamespace = ({ kind }: { readonly kind: string }) => kind === 'Namespace';
  const release = all.filter((one) => !isCrd(one) && !isNamespace(one));
  const yamlOf = (objects: readonly object[]) => objects.map((one) => stringify(one)).join('---\n');
  applied(place, yamlOf(all.filter((one) => isCrd(one) || isNamespace(one))));
  const marked = release.map(({ metadata, ...rest }) => {
    const annotations = {
      ...(metadata['annotations'] as object | undefined),
      'meta.helm.sh/release-name': 'plumbline',
      'meta.helm.sh/release-namespace': NAMESPACE,
    };
    return { ...rest, metadata: { ...metadata, annotations } };
  });
  applied(place, yamlOf(marked), 'helm');
  writeFileSync(join(place.directory, 'release.yaml'), yamlOf(release));
  const script = `#!/bin/sh\n[ "$*" = "-n ${NAMESPACE} get manifest plumbline" ] && cat ${place.directory}/release.yaml\n`;
  writeFileSync(join(place.directory, 'bin/helm'), script);
  chmodSync(join(place.directory, 'bin/helm'), 0o755);
}

const WAYS: readonly Way[] = [
  {
    name: 'the published release manifest',
    install: (place) => void applied(place, releaseManifest()),
    folder: () => root,
    fix: /^kubectl apply --server-side -f https:\S+\/v\d+\.\d+\.\d+\/plumbline-kubernetes-1\.36\.yaml$/,
    translate(text, { directory }) {
      const file = join(directory, 'published.yaml');
      writeFileSync(file, releaseManifest());
      return text.replace(/https:\S+/, file);
    },
  },
  {
    name: 'a release manifest with a registry of its own',
    install: (place) => void applied(place, releaseManifest(REGISTRY)),
    folder: () => root,
    fix: /^npm run --silent release:manifest -- 1\.36 registry\.example\.com\/plumbline \| kubectl apply --server-side -f -$/,
  },
  {
    name: 'a kustomization',
    install: (place) => void kubectl(place, ['apply', '--server-side', '-k', writeKustomization(place.directory)]),
    folder: ({ directory }) => join(directory, 'ours'),
    fix: /^kubectl apply --server-side -k \.$/,
  },
  {
    name: 'the chart',
    install: installAsHelm,
    folder: () => root,
    fix: /^helm -n plumbline-system get manifest plumbline \| kubectl apply --server-side -f -$|manifests\/chart\/plumbline\/crds$/,
  },
];

interface Break {
  readonly name: string;
  /** Arguments of kubectl. */
  readonly inflict: readonly string[];
  readonly finding: RegExp;
}

const deletes = (...args: readonly string[]) => ['delete', ...args];
const BREAKS: readonly Break[] = [
  {
    name: 'no MutatingWebhookConfiguration',
    inflict: deletes('mutatingwebhookconfiguration', WEBHOOK),
    finding: /^there is no MutatingWebhookConfiguration/,
  },
  {
    name: 'no ValidatingWebhookConfiguration',
    inflict: deletes('validatingwebhookconfiguration', WEBHOOK),
    finding: /^there is no ValidatingWebhookConfiguration/,
  },
  {
    name: 'no RoleBinding for the webhooks',
    inflict: deletes('-n', NAMESPACE, 'rolebinding', WEBHOOK_REQUIRED),
    finding: /^the webhooks are switched off/,
  },
  {
    name: 'no scheduler',
    inflict: deletes('-n', NAMESPACE, 'deployment', SCHEDULER),
    finding: /^the Deployment plumbline-scheduler is not installed/,
  },
  {
    name: `no ${SCHEDULER_WEBHOOK}`,
    // By name: the order of the webhooks is the manifest's.
    inflict: ['patch', 'mutatingwebhookconfiguration', WEBHOOK, '--type=strategic', '-p', withoutWebhook()],
    finding: /has no webhook scheduler\.plumbline\.dev/,
  },
  {
    name: 'no definition',
    inflict: deletes('crd', 'nodetopologies.plumbline.dev'),
    finding: /^the cluster has no NodeTopology resource/,
  },
];

function withoutWebhook(): string {
  return JSON.stringify({ webhooks: [{ name: SCHEDULER_WEBHOOK, $patch: 'delete' }] });
}

/** Fields that the API server sets, and those that change all the time. */
const VOLATILE = new Set(['uid', 'resourceVersion', 'creationTimestamp', 'managedFields', 'generation', 'status']);
const SKIPPED = /^(?:events|leases|endpoints|endpointslices|componentstatuses)\b/;

/** Every object of the cluster, by kind and name. */
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
  describe(`what doctor prints, on a cluster with ${way.name}`, function () {
    onControlPlane(this);
    this.timeout(600_000);
    let place: Place;

    before(async () => {
      const directory = mkdtempSync(join(tmpdir(), 'plumbline-fixes-'));
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
      kubectl(place, [
        '-n',
        NAMESPACE,
        'set',
        'env',
        'daemonset/plumbline-node-agent',
        'HTTPS_PROXY=http://proxy:3128',
      ]);
    });
    after(async () => {
      await place?.plane.stop();
      if (place !== undefined) rmSync(place.directory, { recursive: true, force: true });
    });

    for (const { name, inflict, finding } of BREAKS) {
      it(`${name}: restored, and nothing else changes`, async () => {
        const before = contentsOf(place);
        kubectl(place, inflict);
        const { fix } = await findingOf(place, finding);
        const [command] = fix.commands.filter(({ program, args }) => program !== 'kubectl' || args.includes('apply'));
        assert.ok(command, 'a command restores it');
        const text = commandText(command);
        assert.match(text, way.fix);
        const ran = await shell(way.translate?.(text, place) ?? text, place, way.folder(place));
        assert.equal(ran.status, 0, ran.output);
        assert.deepEqual(withCa(contentsOf(place)), withCa(before));
      });
    }

    it('no webhooks while they are fixed: the RoleBinding is deleted, and nothing else', async () => {
      const before = contentsOf(place);
      const ran = await shell(`kubectl -n ${NAMESPACE} delete rolebinding ${WEBHOOK_REQUIRED}`, place, root);
      assert.equal(ran.status, 0, ran.output);
      const { [`RoleBinding ${NAMESPACE}/${WEBHOOK_REQUIRED}`]: binding, ...others } = before;
      assert.ok(binding);
      assert.deepEqual(contentsOf(place), others);
    });
  });
}

/** As cert-manager's cainjector. */
function injectCa(place: Place, kind: string, caBundle: string): void {
  const { webhooks } = JSON.parse(kubectl(place, ['get', kind, WEBHOOK, '-o', 'json'])) as {
    webhooks: readonly { readonly name: string }[];
  };
  const patch = { webhooks: webhooks.map(({ name }) => ({ name, clientConfig: { caBundle } })) };
  kubectl(place, ['patch', kind, WEBHOOK, '--field-manager=cainjector', '-p', JSON.stringify(patch)]);
}

/** A CA bundle that a restored configuration lacks comes from cert-manager, which does not run here. */
function withCa(contents: Record<string, unknown>): unknown {
  return JSON.parse(JSON.stringify(contents, (key, value) => (key === 'caBundle' ? undefined : value)));
}

async function findingOf({ plane }: Place, pattern: RegExp) {
  const access = kubeconfigAccess(plane.adminKubeconfig);
  const cluster = { client: plane.client, access, namespace: 'default', place: '' };
  const { findings } = await readFindings(cluster, Date.now());
  const found = findings.find(({ what, consequences = [] }) =>
    [what, ...consequences].some((text) => pattern.test(text)),
  );
  return found ?? assert.fail(`not found: ${findings.map(({ what }) => what).join('\n')}`);
}

/** A command as an operator types it. */
function shell(text: string, { env }: Place, cwd: string): Promise<{ status: number; output: string }> {
  return new Promise((resolve) => {
    execFile('bash', ['-o', 'pipefail', '-c', `${text} 2>&1`], { env, cwd, maxBuffer: 2 ** 28 }, (error, output) => {
      resolve({ status: error === null ? 0 : Number(error.code), output });
    });
  });
}
