import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { UpstreamCase, UpstreamFile } from './kubelet-upstream.ts';
import type { Adapter, VectorCase, Verdict } from './outcome.ts';

const PAGE = 'docs/reference/compatibility.md';
const MANAGERS = {
  'CPU manager': 'kubelet-cpu-assignment-cases',
  'topology manager': 'kubelet-topologymanager-cases',
  'memory manager': 'kubelet-memorymanager-cases',
  'device manager': 'kubelet-devicemanager-cases',
} as const;
/** Files that hold no cases of their own: topologies and recorded objects that other files and tests refer to. */
const SUPPORT_FILES = /^(?:kubelet-topologies|kubelet-discovery|ovsdb-.*|vmi|launcher-patches|.*\.admission)$/;

const load = (file: string): unknown => JSON.parse(readFileSync(join(import.meta.dirname, `${file}.json`), 'utf8'));

/** Runs the cases by the module of the same name, or the same without `-cases`, which exports `run`. */
async function run(file: string, content = load(file)) {
  const names = readdirSync(import.meta.dirname);
  const name = [file, file.replace(/-cases$/, '')].find((module) => names.includes(`${module}.ts`));
  assert.ok(name, `${file}.json has no adapter`);
  const adapter: { run: Adapter } = await import(`./${name}.ts`);
  const cases = adapter.run(content, load);
  const verdicts = cases.map((one) => ({ name: one.name, verdict: verdictOf(one) }));
  return {
    cases: cases.length,
    skipped: verdicts.flatMap(({ verdict }) => (typeof verdict === 'object' ? verdict.skip : [])),
    failures: verdicts.flatMap(({ name, verdict }) => (typeof verdict === 'string' ? `${name}: ${verdict}` : [])),
  };
}

function verdictOf({ check }: VectorCase): Verdict {
  try {
    return check();
  } catch (error) {
    return error instanceof Error ? (error.stack ?? error.message) : String(error);
  }
}

describe('vectors', () => {
  const files = readdirSync(import.meta.dirname)
    .filter((name) => name.endsWith('.json'))
    .map((name) => name.slice(0, -'.json'.length))
    .filter((name) => !SUPPORT_FILES.test(name));

  for (const file of files) {
    it(`${file}: every case that runs passes`, async function () {
      this.timeout(300_000);
      const { cases, failures, skipped } = await run(file);
      assert.deepEqual(failures, []);
      assert.ok(cases > skipped.length, `nothing ran (${[...new Set(skipped)].join('; ')})`);
    });
  }

  it('of the kubelet are counted by manager and version on the page of versions', async () => {
    const rows: string[] = [];
    for (const [manager, file] of Object.entries(MANAGERS)) {
      const content = load(file) as UpstreamFile<UpstreamCase>;
      const versionOf = ({ since = content.upstream }: UpstreamCase) => since;
      for (const version of new Set(content.cases.map(versionOf))) {
        const cases = content.cases.filter((item) => versionOf(item) === version);
        const { skipped, failures } = await run(file, { ...content, cases });
        const passed = cases.length - skipped.length - failures.length;
        rows.push([manager, version, cases.length, passed, failures.length, skipped.length].join(' | '));
      }
    }
    const page = readFileSync(PAGE, 'utf8');
    const [, section = ''] = page.split("### Upstream's unit tests");
    const cells = [...section.matchAll(/^\|( \w+ manager .*)\|$/gm)].map(([, row = '']) =>
      row.trim().replace(/ *\| */g, ' | '),
    );
    assert.deepEqual(cells.sort(), rows.sort());
  });
});
