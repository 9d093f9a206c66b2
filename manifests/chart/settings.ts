import {
  type Condition,
  type Entry,
  INDENT,
  type Json,
  type MapNode,
  or,
  PAD,
  type Raw,
  type SeqNode,
  type Tree,
} from './tree.ts';

export interface Draft {
  readonly kind: string;
  readonly name: string;
  readonly tree: MapNode;
  when: Condition[];
}

const raw = (text: string): Raw => ({ kind: 'raw', text });
/** A value of values.yaml, which may have several lines. */
const yaml = (value: string): Raw => ({ kind: 'raw', block: true, text: `{{- toYaml ${value} | nindent ${INDENT} }}` });

const DAEMONS: Readonly<Record<string, string>> = {
  'plumbline-webhook': 'webhook',
  'plumbline-scheduler': 'scheduler',
  'plumbline-node-agent': 'nodeAgent',
  'plumbline-console': 'console',
  'plumbline-node-agent-dpu-host': 'nodeAgent',
};

const CONDITIONS: Readonly<Record<string, Condition>> = {
  Certificate: '.Values.certManager.enabled',
  Issuer: '.Values.certManager.enabled',
  NetworkPolicy: '.Values.networkPolicy.enabled',
  PodDisruptionBudget: '.Values.podDisruptionBudget.enabled',
  'ConfigMap/plumbline-dashboard': '.Values.monitoring.dashboard',
};

const MONITORED = [
  ...['spec', 'ingress', 0, 'from', 0, 'namespaceSelector', 'matchLabels'],
  'kubernetes.io/metadata.name',
];

const CONTAINER = ['spec', 'template', 'spec', 'containers', 0];

/**
 * Applies the values that change an object's content, not its presence. With the default values, each renders to the content
 * of the manifests.
 */
export function applySettings(draft: Draft): void {
  const { kind, name, tree, when } = draft;
  const part = DAEMONS[name];
  const condition = CONDITIONS[kind] ?? CONDITIONS[`${kind}/${name}`];
  if (condition !== undefined) when.push(condition);
  if (part !== undefined && (kind === 'Deployment' || kind === 'DaemonSet')) workload(tree, kind, part);
  if (kind.endsWith('WebhookConfiguration')) webhooks(tree);
  if (name === 'plumbline-metrics') set(tree, MONITORED, raw('{{ .Values.monitoring.namespace }}'));
  if (kind === 'NetworkPolicy' && part !== undefined) {
    set(tree, ['spec', 'egress', 0, 'ports'], yaml('.Values.networkPolicy.egressPorts'));
  }
  if (name === 'plumbline-cpu-mask-kubevirt') {
    set(tree, ['subjects', 0, 'namespace'], raw('{{ .Values.kubevirt.namespace }}'));
  }
  if (kind === 'Deployment' && part === 'scheduler') sidecar(tree);
  if (kind === 'Deployment' && part === 'webhook') {
    set(tree, [...CONTAINER, 'env', 'PLUMBLINE_ALIGNMENT', 'value'], raw('{{ .Values.webhook.alignment }}'));
  }
}

const at = (tree: Tree, path: Path): Tree => entryAt(tree, path).value;

function workload(tree: MapNode, kind: string, part: string): void {
  const values = `.Values.${part}`;
  if (kind === 'Deployment') set(tree, ['spec', 'replicas'], raw(`{{ ${values}.replicas }}`));
  else set(tree, ['spec', 'updateStrategy'], yaml(`${values}.updateStrategy`));
  const pod = at(tree, ['spec', 'template', 'spec']) as MapNode;
  const container = at(tree, CONTAINER) as MapNode;
  set(tree, [...CONTAINER, 'image'], raw(`{{ include "plumbline.image" (list . ${values}.image) }}`));
  set(tree, [...CONTAINER, 'resources'], yaml(`${values}.resources`));
  // A file configures kube-scheduler, not flags.
  if (part !== 'scheduler') addArguments(container, `${values}.flags`);
  insert(container, 'imagePullPolicy', raw('{{ .Values.images.pullPolicy }}'), '.Values.images.pullPolicy');
  insert(pod, 'imagePullSecrets', yaml('.Values.images.pullSecrets'), '.Values.images.pullSecrets');
  if (kind === 'DaemonSet') {
    // The agents run on every node that their DaemonSets select by labels.
    set(tree, ['spec', 'template', 'spec', 'tolerations'], yaml(`${values}.tolerations`));
    return;
  }
  for (const key of ['nodeSelector', 'tolerations', 'affinity'])
    insert(pod, key, yaml(`${values}.${key}`), `${values}.${key}`);
}

const EXTENDER = ['spec', 'template', 'spec', 'initContainers', 0];

/** The pod of a kube-scheduler, whose version follows the cluster, including the extender. */
function sidecar(tree: MapNode): void {
  set(tree, [...CONTAINER, 'image'], raw('{{ include "plumbline.kubeScheduler" . }}'));
  set(tree, [...EXTENDER, 'image'], raw('{{ include "plumbline.image" (list . .Values.schedulerPlugin.image) }}'));
  set(tree, [...EXTENDER, 'resources'], yaml('.Values.schedulerPlugin.resources'));
  const extender = at(tree, EXTENDER) as MapNode;
  addArguments(extender, '.Values.schedulerPlugin.flags');
  insert(extender, 'imagePullPolicy', raw('{{ .Values.images.pullPolicy }}'), '.Values.images.pullPolicy');
}

/** Appends the flags of values.yaml, so that they override those of the manifests. */
function addArguments(container: MapNode, flags: string): void {
  const text = `{{- range $flag, $value := ${flags} }}\n${PAD}- {{ printf "--%s=%v" $flag $value | quote }}\n{{- end }}`;
  const flagItem: SeqNode['items'][number] = { value: { kind: 'raw', block: true, text } };
  const args = container.entries.find(({ key }) => key === 'args');
  if (args === undefined) {
    insert(container, 'args', { kind: 'seq', items: [flagItem] }, flags);
    return;
  }
  const { items } = args.value as SeqNode;
  // The flags may be the only arguments.
  if (args.when !== undefined) {
    for (const item of items) item.when ??= args.when;
    args.when = or([args.when, flags]);
  }
  items.push(flagItem);
}

/** The entries that change launchers which do not opt in. The others guard names of Plumbline in every namespace. */
const WITHOUT_OPT_IN = ['networks.plumbline.dev', 'scheduler.plumbline.dev'];

const IN_NAMESPACES: SeqNode['items'][number] = {
  value: {
    kind: 'map',
    entries: [
      { key: 'key', value: 'kubernetes.io/metadata.name' },
      { key: 'operator', value: 'In' },
      { key: 'values', value: yaml('.Values.webhook.namespaces') },
    ],
  },
  when: '.Values.webhook.namespaces',
};

/** Either cert-manager sets the CA of the webhooks, or the values do. */
function webhooks(tree: MapNode): void {
  const annotations = entryAt(tree, ['metadata', 'annotations']);
  annotations.when = '.Values.certManager.enabled';
  for (const { value } of (at(tree, ['webhooks']) as SeqNode).items) {
    const config = at(value, ['clientConfig']) as MapNode;
    insert(config, 'caBundle', raw('{{ .Values.webhook.caBundle }}'), '.Values.webhook.caBundle');
    if (WITHOUT_OPT_IN.includes(String(at(value, ['name']))))
      (at(value, ['namespaceSelector', 'matchExpressions']) as SeqNode).items.push(IN_NAMESPACES);
  }
}

type Path = readonly (string | number)[];

function entryAt(tree: Tree, path: Path): { value: Tree; when?: Condition | undefined } {
  let node: { value: Tree; when?: Condition | undefined } = { value: tree };
  for (const step of path) {
    const { value } = node;
    const next = memberOf(value, step);
    if (next === undefined) throw new Error(`the manifests have no ${path.join('.')} (at ${step})`);
    node = next;
  }
  return node;
}

/** A member of a map, or of a list by its index or its name, which is its first entry. */
function memberOf(tree: Tree, step: string | number): SeqNode['items'][number] | undefined {
  if (typeof tree !== 'object' || tree === null) return undefined;
  if (tree.kind === 'map') return tree.entries.find((entry) => entry.key === step);
  if (tree.kind !== 'seq') return undefined;
  if (typeof step === 'number') return tree.items[step];
  const isNamed = ({ key, value }: Entry) => key === 'name' && value === step;
  return tree.items.find(({ value }) => (value as MapNode).entries.some(isNamed));
}

function set(tree: Tree, path: Path, value: Tree): void {
  entryAt(tree, path).value = value;
}

function insert(map: MapNode, key: string, value: Tree, when: Condition): void {
  map.entries.push({ key, value, when });
}

/** Values that the templates pass on unchanged, so the schema accepts any object. */
const HANDED_ON = ['resources', 'nodeSelector', 'affinity', 'updateStrategy'];
const CHOICES: Readonly<Record<string, readonly string[]>> = {
  'scheduler.mode': ['sidecar', 'loopback'],
  'nodeAgent.distribution': ['', 'k3s', 'rke2', 'k0s', 'microk8s'],
  'dpu.lease': ['none', 'own', 'observe'],
  'webhook.alignment': ['annotated', 'always', 'auto'],
  'images.pullPolicy': ['', 'Always', 'IfNotPresent', 'Never'],
};

/** A JSON schema of the values: their types, and no other keys, so that a mistyped key is an error. */
export function valuesSchema(values: Json): object {
  return { $schema: 'https://json-schema.org/draft-07/schema#', ...schemaOf(values, '') };
}

function schemaOf(value: Json, path: string): object {
  const key = path.split('.').at(-1) ?? '';
  if (HANDED_ON.includes(key)) return { type: 'object' };
  if (key === 'flags') {
    return {
      type: 'object',
      propertyNames: { pattern: '^[a-z][a-z0-9-]*$' },
      additionalProperties: { type: ['string', 'number', 'boolean'] },
    };
  }
  if (Array.isArray(value)) return { type: 'array' };
  if (typeof value !== 'object' || value === null) {
    const choices = CHOICES[path];
    return { type: typeof value === 'number' ? 'integer' : typeof value, ...(choices && { enum: choices }) };
  }
  const properties = Object.entries(value).map(([name, field]) => [
    name,
    schemaOf(field, path === '' ? name : `${path}.${name}`),
  ]);
  // Helm itself adds this key.
  const shared = path === '' ? { global: { type: 'object' } } : {};
  return { type: 'object', additionalProperties: false, properties: { ...Object.fromEntries(properties), ...shared } };
}
