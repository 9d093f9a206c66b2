import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { watchedPod } from '../../console/server/pods.ts';
import { pod, tolerations } from '../../kube/resources.ts';
import { startedInstance } from '../../kube/virtual-machines.ts';
import { observedPod } from '../../scheduler-plugin/cluster/pod-view.ts';
import { schedulingPod } from '../../scheduler-plugin/extender/args.ts';
import { root } from '../support/bundles.ts';
import { AFFINITY, limitsOf } from '../support/reader-limits.ts';

const READERS = [
  pod.extend({ spec: pod.shape.spec.extend({ tolerations }) }),
  observedPod,
  schedulingPod,
  watchedPod,
  startedInstance,
];

/**
 * Limits of fields that no tenant can make longer: the API server writes or validates them (pkg/apis/core/validation). Of VMIs
 * only the metadata is here.
 */
const ELSEWHERE: readonly [paths: RegExp, why: string][] = [
  [/^\.metadata\.(name|generateName|namespace)$/, 'DNS names'],
  [/^\.metadata\.(uid|resourceVersion|creationTimestamp|deletionTimestamp)$/, 'written by the API server'],
  [/^\.spec\.(initC|c)ontainers\[\]\.(name|restartPolicy)$/, 'a DNS label, and an enumeration'],
  [/^\.spec\.nodeName$/, 'a DNS name'],
  [/^\.status\.(conditions|nominatedNodeName|phase|qosClass|startTime)/, 'the role edit may not write a pod’s status'],
];

const SPEC = '.spec';
const TERMS = `${AFFINITY}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[]`;
const EXPRESSION = `${TERMS}.matchExpressions[]`;
const HOLDERS = ['.containers[]', '.initContainers[]', '', '.domain'].map((at) => `${SPEC}${at}.resources`);
const amounts = (part: string) => HOLDERS.flatMap((at) => [`${at}.requests${part}`, `${at}.limits${part}`]);
const both = (part: string) => [`${EXPRESSION}${part}`, EXPRESSION.replace('Expressions', 'Fields') + part];
const listAt = (name: string) => `variables.spec.?${name}.orValue([])`;
const textAt = (field: string) => `bytes(variables.spec.?${field}.orValue('')).size()`;
const REQUIREMENTS = 'variables.requirements.exists(l, l.exists(r,';

type Row = readonly [groups: readonly (readonly string[])[], refused: string, message: string];
const atMost = (paths: readonly string[], size: string, what: string, unit = 'are allowed'): Row => [
  [paths],
  `${size} > $0`,
  `${what}: at most $0 ${unit}`,
];
const listOf = (name: string) => atMost([`.spec.${name}[] items`], `${listAt(name)}.size()`, `spec.${name}`);
const textOf = (field: string) => {
  const path = `.spec.${field.replace('?', '')}`;
  return atMost([path], textAt(field), path.slice(1), 'bytes are allowed');
};
const NODE_AFFINITY = 'spec.affinity.nodeAffinity';
const VALUES = 'variables.requirements.map(l, l.map(r, r.?values.orValue([]).size()).sum()).sum()';

/** What is refused, with `$0` for the limit of the first group of fields, and the message. */
const ROWS: readonly Row[] = [
  ...['containers', 'initContainers'].map(listOf),
  [[amounts('{} entries')], 'variables.amounts.exists(m, m.size() > $0)', 'resources: at most $0 are allowed'],
  [
    [amounts('{key}'), amounts('{}')],
    'variables.amounts.exists(m, m.exists(k, bytes(k).size() > $0 || bytes(string(m[k])).size() > $1))',
    'resources: a name may have $0 bytes and a quantity $1',
  ],
  atMost(['.spec.nodeSelector{} entries'], 'variables.nodeSelector.size()', 'spec.nodeSelector'),
  [
    [['.spec.nodeSelector{key}'], ['.spec.nodeSelector{}']],
    'variables.nodeSelector.exists(k, bytes(k).size() > $0 || bytes(variables.nodeSelector[k]).size() > $1)',
    'spec.nodeSelector: a key may have $0 bytes and a value $1',
  ],
  [
    [[`${TERMS} items`, `${AFFINITY}.preferredDuringSchedulingIgnoredDuringExecution[] items`]],
    '[variables.required, variables.preferred].exists(l, l.size() > $0)',
    `${NODE_AFFINITY}: at most $0 terms are allowed`,
  ],
  atMost(
    [`${AFFINITY} requirements`, ...both(' items')],
    'variables.requirements.map(l, l.size()).sum()',
    NODE_AFFINITY,
    'requirements are allowed',
  ),
  atMost([`${AFFINITY} values`, ...both('.values[] items')], VALUES, NODE_AFFINITY, 'values are allowed'),
  [
    [both('.key'), both('.operator')],
    `${REQUIREMENTS} bytes(r.key).size() > $0 || bytes(r.operator).size() > $1))`,
    `${NODE_AFFINITY}: a key may have $0 bytes and an operator $1`,
  ],
  [
    [both('.values[]')],
    `${REQUIREMENTS} r.?values.orValue([]).exists(v, bytes(v).size() > $0)))`,
    `${NODE_AFFINITY}: a value may have $0 bytes`,
  ],
  ...['tolerations', 'volumes', 'resourceClaims', 'topologySpreadConstraints'].map(listOf),
  [
    [['.spec.schedulingGates[] items'], ['.spec.schedulingGates[].name']],
    'variables.gates.size() > $0 || variables.gates.exists(g, bytes(g.name).size() > $1)',
    'spec.schedulingGates: at most $0 are allowed, with names of $1 bytes',
  ],
  [
    [['.spec.networks[] items'], ['.spec.networks[].name'], ['.spec.networks[].multus.networkName']],
    'variables.networks.size() > $0 || variables.networks.exists(n, bytes(n.name).size() > $1 || ' +
      "bytes(n.?multus.?networkName.orValue('')).size() > $2)",
    'spec.networks: at most $0 are allowed, with names of $1 bytes and definitions of $2',
  ],
  ...['schedulerName', 'startStrategy', 'domain.?ioThreadsPolicy'].map(textOf),
];

/** The policy plumbline-cpu-mask bounds these. */
const MASK_ANNOTATIONS = ['plumbline.dev/cpu-mask', 'plumbline.dev/numa-affinity'];

describe('plumbline-limits', () => {
  const limits = limitsOf(READERS);
  const limitOf = (path: string) => limits.get(path) ?? assert.fail(`no reader has ${path}`);

  it('refuses what exceeds a limit of the readers in the spec of a pod or VMI, and nothing else', () => {
    const expected = ROWS.map(([groups, refused, message]) => {
      const maxima = groups.map((paths) => [...new Set(paths.filter((path) => limits.has(path)).map(limitOf))]);
      for (const [i, found] of maxima.entries()) assert.equal(found.length, 1, `${groups[i]?.join()}: ${found.join()}`);
      const filled = `${refused} ? '${message}' : ''`;
      return maxima.reduce((text, [max], i) => text.replaceAll(`$${i}`, String(max)), filled);
    });
    const { excess } = policy().variables;
    assert.equal(excess, `variables.sameSpec ? [] : [ ${expected.join(', ')} ].filter(t, t != '')`);
  });

  it('reads the annotations and owners that the readers read, with their limits', () => {
    const prefix = '.metadata.annotations.';
    const annotations = [...limits.keys()].filter((path) => path.startsWith(prefix));
    const names = annotations.map((path) => path.slice(prefix.length)).sort();
    const { variables, validations } = policy();
    const here = names.filter((name) => !MASK_ANNOTATIONS.includes(name));
    assert.equal(here.length, names.length - MASK_ANNOTATIONS.length);
    assert.equal(variables['read'], `[${here.map((name) => `'${name}'`).join(', ')}]`);
    const [longest, ...other] = new Set(annotations.map(limitOf));
    assert.equal(other.length, 0);
    assert.match(variables['long'] ?? '', new RegExp(`size\\(\\) > ${longest} `));
    const owners = '.metadata.ownerReferences[]';
    const [name, uid, kind, version] = ['name', 'uid', 'kind', 'apiVersion'].map((field) =>
      limitOf(`${owners}.${field}`),
    );
    const text =
      `variables.sameOwners || variables.owners[0].size() > ${limitOf(`${owners} items`)} || ` +
      `variables.owners[0].all(o, bytes(o.name).size() <= ${name} && bytes(o.uid).size() <= ${uid} && ` +
      `bytes(o.kind).size() <= ${kind} && bytes(o.apiVersion).size() <= ${version})`;
    assert.deepEqual(
      validations.slice(0, 2).map(({ expression }) => expression),
      [`variables.sameOwners || variables.owners[0].size() <= ${limitOf(`${owners} items`)}`, text],
    );
  });

  it('has each limit of the readers, unless no tenant can exceed it', () => {
    const inRows = new Set(ROWS.flatMap(([groups]) => groups.flat()));
    const left = [...limits.keys()].filter(
      (path) =>
        !inRows.has(path) &&
        !/^\.metadata\.(annotations|ownerReferences)/.test(path) &&
        !ELSEWHERE.some(([paths]) => paths.test(path)),
    );
    assert.deepEqual(left, []);
  });
});

interface Policy {
  readonly spec: {
    readonly variables: readonly { readonly name: string; readonly expression: string }[];
    readonly validations: readonly { readonly expression: string }[];
  };
}

function policy() {
  const text = readFileSync(join(root, 'manifests/base/policies/limits.yaml'), 'utf8');
  const [document = assert.fail('no policy')] = parseAllDocuments(text);
  const { spec } = document.toJS() as Policy;
  return {
    variables: Object.fromEntries(spec.variables.map(({ name, expression }) => [name, expression])),
    validations: spec.validations,
  };
}
