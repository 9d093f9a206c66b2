import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify } from 'yaml';
import { byText } from '../../model/lists.ts';
import type { KubernetesObject } from '../real/control-plane-stage.ts';
import { objectsOf, render } from '../real/install/rendered-fixture.ts';
import { root } from '../support/bundles.ts';
import { tempDirectories } from '../support/files.ts';
import { needs, pathOf } from '../support/parts.ts';
import { NODE_TOPOLOGIES } from './definition-fixture.ts';

const CHART = join(root, 'manifests/chart/plumbline');
const AGENT = 'base/node-agent/components';

const SETTINGS: Readonly<Record<string, string>> = {
  [`${AGENT}/gate`]: 'nodeAgent.gate=true',
  [`${AGENT}/dpu`]: 'dpu.lease=own',
  [`${AGENT}/dpu-observe`]: 'dpu.lease=observe',
  [`${AGENT}/network-map`]: 'nodeAgent.networkMap=true',
  [`${AGENT}/interrupts`]: 'nodeAgent.moveInterrupts=true',
  [`${AGENT}/selinux`]: 'nodeAgent.selinux=true',
  [`${AGENT}/openshift`]: 'nodeAgent.openshift=true',
  ...Object.fromEntries(
    ['k3s', 'rke2', 'k0s', 'microk8s'].map((name) => [`${AGENT}/${name}`, `nodeAgent.distribution=${name}`]),
  ),
  'components/monitoring': 'monitoring.enabled=true',
  'components/console': 'console.enabled=true',
  'scheduler/loopback': 'scheduler.mode=loopback',
  'components/align-all': 'webhook.alignment=auto',
  'components/dpu-migrate': 'dpu.recovery=migrate',
};

/** The objects of manifests, without the namespace that kustomize gives to policies, which have none. */
function manifestObjects(folder: string, components: readonly string[] = []): KubernetesObject[] {
  return objectsOf(render(folder, components)).map((object) => {
    if (!object.kind.startsWith('ValidatingAdmissionPolicy')) return object;
    const { namespace: _, ...metadata } = object.metadata;
    return { ...object, metadata };
  });
}

const idOf = ({ kind, metadata }: KubernetesObject) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`;

const readChart = (file: string) => readFileSync(join(CHART, file), 'utf8');

const VALUES = parse(readChart('values.yaml')) as object;
/** Values that README.md describes once for all components. */
const SHARED = ['image', 'resources', 'replicas', 'flags', 'nodeSelector', 'tolerations', 'affinity', 'updateStrategy'];

function pathsOf(values: object, prefix = ''): string[] {
  return Object.entries(values)
    .filter(([key]) => prefix === '' || !SHARED.includes(key))
    .flatMap(([key, value]: [string, unknown]) => {
      const isTable = typeof value === 'object' && value !== null && !Array.isArray(value);
      return isTable ? pathsOf(value, `${prefix}${key}.`) : [`${prefix}${key}`];
    });
}

describe('the pages of the Helm chart', () => {
  it('README.md describes exactly the existing values', () => {
    const described = [...readChart('README.md').matchAll(/^\| `.*$/gm)].flatMap(([row]) =>
      [...(row.split('|')[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, name]) => name ?? ''),
    );
    assert.deepEqual(described.sort(), pathsOf(VALUES).sort());
  });

  it('values.schema.json has exactly the existing values', () => {
    interface Schema {
      readonly properties?: Readonly<Record<string, Schema>>;
    }
    const described = ({ properties }: Schema, prefix = ''): string[] =>
      Object.entries(properties ?? {}).flatMap(([key, schema]) =>
        schema.properties === undefined ? [`${prefix}${key}`] : described(schema, `${prefix}${key}.`),
      );
    const existing = (values: object, prefix = ''): string[] =>
      Object.entries(values).flatMap(([key, value]: [string, unknown]) => {
        const isTable = typeof value === 'object' && value !== null && !Array.isArray(value) && !isAnyObject(key);
        return isTable ? existing(value, `${prefix}${key}.`) : [`${prefix}${key}`];
      });
    const isAnyObject = (key: string) => SHARED.includes(key) && key !== 'image';
    const schema = JSON.parse(readChart('values.schema.json')) as Schema;
    // Helm itself adds "global".
    assert.deepEqual(described(schema).sort(), [...existing(VALUES), 'global'].sort());
  });

  it('crds/ has the definition of the manifests', () => {
    const { spec } = parse(readChart('crds/nodetopologies.yaml')) as typeof NODE_TOPOLOGIES;
    assert.deepEqual(spec, NODE_TOPOLOGIES.spec);
  });

  it('Chart.yaml declares the custom resource of crds/ for Artifact Hub', () => {
    const { annotations } = parse(readChart('Chart.yaml')) as { annotations: Readonly<Record<string, string>> };
    const [listed] = parse(annotations['artifacthub.io/crds'] ?? '') as Readonly<Record<string, string>>[];
    const { metadata, spec } = NODE_TOPOLOGIES;
    assert.deepEqual(
      [listed?.['kind'], listed?.['name'], listed?.['version']],
      ['NodeTopology', metadata.name, spec.versions[0]?.name],
    );
  });
});

describe('the Helm chart', function () {
  needs('helm');
  needs('kubectl');
  this.timeout(300_000);

  const temp = tempDirectories();
  // The chart runs kube-scheduler in the cluster's version, and the base in the one that it names.
  const version =
    /newTag: (v1\.\S+)/.exec(readFileSync(join(root, 'manifests/base/kustomization.yaml'), 'utf8'))?.[1] ?? '';
  const helm = (settings: readonly string[], namespace = 'plumbline-system', chart = CHART) => {
    const set = settings.flatMap((setting) => ['--set', setting]);
    const args = ['template', 'plumbline', chart, '-n', namespace, '--include-crds', '--kube-version', version, ...set];
    return spawnSync(pathOf('helm'), args, { encoding: 'utf8' });
  };
  const rendered = (...settings: string[]): KubernetesObject[] => {
    const { status, stdout, stderr } = helm(settings);
    assert.equal(status, 0, stderr);
    return objectsOf(stdout);
  };
  const byId = (objects: readonly KubernetesObject[]) => new Map(objects.map((object) => [idOf(object), object]));
  const find = (objects: readonly KubernetesObject[], kind: string, name: string) => {
    const object = objects.find((object) => object.kind === kind && object.metadata.name === name);
    assert.ok(object, `no ${kind} ${name}`);
    return object;
  };
  // Components add to the end of these lists, whose order has no effect.
  const ordered = (object: unknown) =>
    JSON.parse(JSON.stringify(object), (key, value: unknown) =>
      key === 'volumes' || key === 'webhooks'
        ? (value as { name: string }[]).toSorted(byText(({ name }) => name))
        : value,
    ) as unknown;
  const assertSame = (chart: readonly KubernetesObject[], manifests: readonly KubernetesObject[]) => {
    // Helm creates it.
    const others = byId(manifests.filter((manifest) => idOf(manifest) !== 'Namespace /plumbline-system'));
    assert.deepEqual([...byId(chart).keys()].sort(), [...others.keys()].sort());
    for (const [key, object] of byId(chart)) assert.deepEqual(ordered(object), ordered(others.get(key)), key);
  };

  it('gives the base by default', () => assertSame(rendered(), manifestObjects('base')));

  for (const component of Object.keys(SETTINGS)) {
    it(`${SETTINGS[component]}: gives the base with ${component}`, () => {
      assertSame(rendered(SETTINGS[component] ?? ''), manifestObjects('base', [component]));
    });
  }

  it('gives the overlays for several settings at once', () => {
    const settings = ['monitoring.enabled=true', 'dpu.lease=own'];
    assertSame(rendered(...settings), manifestObjects('overlays/dpu-host', ['components/monitoring']));
    assertSame(
      rendered('monitoring.enabled=true', 'nodeAgent.gate=true'),
      manifestObjects('overlays/kubevirt-ovn-kubernetes', ['components/monitoring']),
    );
  });

  it('9.8.7 of the chart runs 9.8.7 of every daemon', () => {
    const next = join(temp(), 'next');
    cpSync(CHART, next, { recursive: true });
    const chart = parse(readChart('Chart.yaml')) as object;
    writeFileSync(join(next, 'Chart.yaml'), stringify({ ...chart, version: '9.8.7', appVersion: '9.8.7' }));
    const { status, stdout, stderr } = helm(['console.enabled=true'], undefined, next);
    assert.equal(status, 0, stderr);
    const images = [...stdout.matchAll(/image: (\S*plumbline-[a-z-]+:\S+)/g)].map(([, image]) => image);
    assert.ok(images.length >= 4);
    for (const image of images) assert.match(image ?? '', /:9\.8\.7"?$/);
  });

  it('has images, replicas, resources and flags in their places', () => {
    const objects = rendered(
      ...['images.registry=registry.example.org/mirror/', 'images.pullPolicy=Always', 'webhook.image.tag=1.2.3'],
      ...['webhook.replicas=3', 'webhook.flags.full-pcpus-only=false', 'webhook.flags.alignment=always'],
      ...['schedulerPlugin.flags.eviction=hold', 'dpu.lease=observe', 'nodeAgent.flags.allocation-check=warn'],
      'schedulerPlugin.resources.requests.cpu=1',
    );
    interface Workload {
      readonly replicas: number;
      readonly template: {
        readonly spec: {
          readonly containers: readonly [Readonly<Record<string, unknown>>];
          readonly initContainers?: readonly Readonly<Record<string, unknown>>[];
        };
      };
    }
    const spec = (kind: string, name: string) => find(objects, kind, name)['spec'] as Workload;
    const container = (kind: string, name: string) => spec(kind, name).template.spec.containers[0];
    const webhook = container('Deployment', 'plumbline-webhook');
    assert.equal(spec('Deployment', 'plumbline-webhook').replicas, 3);
    assert.deepEqual(
      [webhook['image'], webhook['imagePullPolicy'], webhook['args']],
      [
        'registry.example.org/mirror/plumbline-webhook:1.2.3',
        'Always',
        ['--alignment=always', '--full-pcpus-only=false'],
      ],
    );
    const [extender = {}] = spec('Deployment', 'plumbline-scheduler').template.spec.initContainers ?? [];
    assert.equal((extender['args'] as string[]).at(-1), '--eviction=hold');
    assert.equal((extender['resources'] as { requests: { cpu: unknown } }).requests.cpu, 1);
    for (const name of ['plumbline-node-agent', 'plumbline-node-agent-dpu-host']) {
      assert.equal((container('DaemonSet', name)['args'] as string[]).at(-1), '--allocation-check=warn', name);
    }
  });

  it('sends every launcher if the flag is set, and uses KubeVirt’s namespace for its controller', () => {
    for (const policy of ['auto', 'always']) {
      const objects = rendered(`webhook.flags.alignment=${policy}`);
      for (const kind of ['MutatingWebhookConfiguration', 'ValidatingWebhookConfiguration']) {
        const webhooks = JSON.stringify(find(objects, kind, 'plumbline-webhook'));
        const every = JSON.stringify(find(rendered(`webhook.alignment=${policy}`), kind, 'plumbline-webhook'));
        assert.equal(webhooks, every, `${kind}: ${policy}`);
      }
    }
    const binding = find(rendered('kubevirt.namespace=cnv'), 'ClusterRoleBinding', 'plumbline-cpu-mask-kubevirt');
    assert.deepEqual(binding['subjects'], [{ kind: 'ServiceAccount', name: 'kubevirt-controller', namespace: 'cnv' }]);
  });

  it('limits the entries for launchers that do not opt in to the given namespaces, and no other entry', () => {
    const objects = rendered('webhook.namespaces={tenants,lab}');
    const entries = objects
      .filter(({ kind }) => kind.endsWith('WebhookConfiguration'))
      .flatMap((one) => one['webhooks'] as { name: string; namespaceSelector?: object }[]);
    const limited = entries.filter(({ namespaceSelector }) => JSON.stringify(namespaceSelector)?.includes('"lab"'));
    assert.deepEqual(limited.map(({ name }) => name).sort(), ['networks.plumbline.dev', 'scheduler.plumbline.dev']);
  });

  it('has no objects of cert-manager, policies and network policies if they are off, and the given authority', () => {
    const off = ['certManager', 'policies', 'networkPolicy', 'podDisruptionBudget'].map(
      (one) => `${one}.enabled=false`,
    );
    const objects = rendered(...off, 'webhook.caBundle=Q0E=');
    assert.deepEqual(
      objects
        .filter(({ apiVersion, kind }) => /cert-manager|^policy\//.test(apiVersion) || /Policy/.test(kind))
        .map(idOf),
      [],
    );
    for (const object of objects.filter(({ kind }) => kind.endsWith('WebhookConfiguration'))) {
      assert.equal(object.metadata['annotations'], undefined);
      const webhooks = object['webhooks'] as { clientConfig: { caBundle: string } }[];
      assert.deepEqual([...new Set(webhooks.map(({ clientConfig }) => clientConfig.caBundle))], ['Q0E=']);
    }
  });

  it('refuses a mistyped value, an invalid one and a wrong namespace with a clear line', () => {
    for (const [setting, message] of [
      ['webhok.replicas=3', /webhok/],
      ['dpu.lease=mine', /lease/],
      ['webhook.alignment=some', /alignment/],
      ['webhook.replicas=many', /replicas/],
      ['images.registry=', /images\.registry is empty: name the registry of Plumbline's images, such as ghcr\.io\//],
    ] as const) {
      const { status, stderr } = helm([setting]);
      assert.equal(status, 1, setting);
      assert.match(stderr, message);
    }
    const { status, stderr } = helm([], 'elsewhere');
    assert.equal(status, 1);
    assert.match(stderr, /Plumbline lives in the namespace plumbline-system, not in elsewhere/);
  });
});
