import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parse, parseAllDocuments, stringify } from 'yaml';
import { applySettings, type Draft, valuesSchema } from './settings.ts';
import { type Condition, emit, type Json, type MapNode, merge, not, or } from './tree.ts';

/**
 * Generates the Helm chart from the manifests, so that both have one source: the base, the additions of each component under
 * a condition, and the values of settings.ts. `npm run chart` writes it; Chart.yaml, values.yaml and files whose names begin
 * with _ or are in capitals are written by hand.
 */
const MANIFESTS = join(import.meta.dirname, '..');
const CHART = join(import.meta.dirname, 'plumbline');
const AGENT = 'base/node-agent/components';

export const COMPONENTS: Readonly<Record<string, Condition>> = {
  [`${AGENT}/gate`]: '.Values.nodeAgent.gate',
  [`${AGENT}/dpu`]: 'eq .Values.dpu.lease "own"',
  [`${AGENT}/dpu-observe`]: 'eq .Values.dpu.lease "observe"',
  [`${AGENT}/network-map`]: '.Values.nodeAgent.networkMap',
  [`${AGENT}/selinux`]: '.Values.nodeAgent.selinux',
  [`${AGENT}/openshift`]: '.Values.nodeAgent.openshift',
  ...Object.fromEntries(
    ['k3s', 'rke2', 'k0s', 'microk8s'].map((name) => [
      `${AGENT}/${name}`,
      `eq .Values.nodeAgent.distribution "${name}"`,
    ]),
  ),
  'components/monitoring': '.Values.monitoring.enabled',
  'components/console': '.Values.console.enabled',
  'scheduler/loopback': 'eq .Values.scheduler.mode "loopback"',
  // Also if only the flag is set, since it would have no effect alone.
  'components/align-all':
    'or (ne .Values.webhook.alignment "annotated") (has (toString .Values.webhook.flags.alignment) (list "auto" "always"))',
};

interface KubernetesObject {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

export function generateChart(): ReadonlyMap<string, string> {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-chart-'));
  try {
    cpSync(MANIFESTS, join(directory, 'manifests'), { recursive: true });
    const base = build(directory, []);
    const variants = Object.entries(COMPONENTS).map(([name, when]) => ({ when, objects: build(directory, [name]) }));
    const identities = new Set([base, ...variants.map(({ objects }) => objects)].flatMap((all) => [...all.keys()]));
    const drafts = [...identities].flatMap(
      (id) =>
        draftOf(
          base.get(id),
          variants.map(({ when, objects }) => ({ when, value: objects.get(id) })),
        ) ?? [],
    );
    const files = filesOf(drafts);
    const definitions = [...base.values()].filter(({ kind }) => kind === 'CustomResourceDefinition');
    for (const definition of definitions)
      files.set(`crds/${definition.metadata.name.split('.')[0]}.yaml`, stringify(definition, { lineWidth: 0 }));
    return files;
  } finally {
    rmSync(directory, { recursive: true });
  }
}

function build(directory: string, components: readonly string[]): Map<string, KubernetesObject> {
  const kustomization = { resources: ['manifests/base'], components: components.map((name) => `manifests/${name}`) };
  writeFileSync(join(directory, 'kustomization.yaml'), stringify(kustomization));
  const yaml = execFileSync('kubectl', ['kustomize', directory], { encoding: 'utf8' });
  const objects = parseAllDocuments(yaml).map((document) => document.toJS() as KubernetesObject);
  return new Map(objects.map((one) => [`${one.kind}/${one.metadata.namespace ?? ''}/${one.metadata.name}`, one]));
}

/** Undefined for objects that a chart has elsewhere, or leaves to Helm. */
function draftOf(
  base: KubernetesObject | undefined,
  variants: readonly { readonly when: Condition; readonly value: KubernetesObject | undefined }[],
): Draft | undefined {
  const present = variants.filter(({ value }) => value !== undefined);
  const object = base ?? present[0]?.value;
  if (object === undefined) return undefined;
  const { kind, metadata } = object;
  // Helm creates the release's namespace itself, and reads definitions from crds/.
  if (kind === 'CustomResourceDefinition' || (kind === 'Namespace' && metadata.name === 'plumbline-system'))
    return undefined;
  const others = variants.map(({ when, value }) => ({ when, value: value as Json | undefined }));
  const tree = merge(object as unknown as Json, others) as MapNode;
  const absent = variants.filter(({ value }) => value === undefined).map(({ when }) => when);
  const draft: Draft = { kind, name: metadata.name, tree, when: [] };
  if (base === undefined) draft.when.push(or(present.map(({ when }) => when)));
  else if (absent.length > 0) draft.when.push(not(or(absent)));
  if (kind.startsWith('ValidatingAdmissionPolicy') || metadata.name.startsWith('plumbline-cpu-mask')) {
    draft.when.push('.Values.policies.enabled');
  }
  applySettings(draft);
  return draft;
}

const HEADER = '{{- /* Made of the manifests by `npm run chart`: change those. */ -}}\n';

function filesOf(drafts: readonly Draft[]): Map<string, string> {
  const files = new Map<string, string>();
  for (const { kind, name, tree, when } of drafts) {
    const path = `templates/${fileOf(kind, name)}.yaml`;
    const guard =
      when.length > 1 ? `and ${when.map((one) => (one.includes(' ') ? `(${one})` : one)).join(' ')}` : when[0];
    const body = `---\n${emit(tree)}`;
    const text = guard === undefined ? body : `{{- if ${guard} }}\n${body}{{- end }}\n`;
    files.set(path, (files.get(path) ?? HEADER) + text);
  }
  const values = parse(readFileSync(join(CHART, 'values.yaml'), 'utf8')) as Json;
  files.set('values.schema.json', `${JSON.stringify(valuesSchema(values), undefined, 2)}\n`);
  return files;
}

function fileOf(kind: string, name: string): string {
  if (kind.startsWith('ValidatingAdmissionPolicy') || name.startsWith('plumbline-cpu-mask')) return 'policies';
  if (/^plumbline-(webhook(-required|-switch)?|opt-in)$/.test(name)) return 'webhook';
  if (name === 'plumbline-scheduler-plugin') return 'scheduler-plugin';
  if (/^plumbline-scheduler(-|$)/.test(name)) return 'scheduler';
  if (/^plumbline-node-agent(-dpu-host|-scc)?$/.test(name)) return 'node-agent';
  if (name === 'plumbline-dpu') return 'dpu';
  if (name === 'plumbline-console') return 'console';
  if (/-metrics$/.test(name) || ['ServiceMonitor', 'PrometheusRule', 'ConfigMap'].includes(kind)) return 'monitoring';
  return 'shared';
}

if (process.argv[1] === import.meta.filename) {
  for (const [path, text] of generateChart()) {
    const file = join(CHART, path);
    mkdirSync(dirname(file), { recursive: true });
    writeFileSync(file, text);
  }
}
