import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import packageJson from '../../package.json' with { type: 'json' };
import type { FixtureCluster } from '../cli/cluster-fixture.ts';
import { contradictedPrediction } from '../cli/contradicted-prediction-fixture.ts';
import { buildCli, PROGRAM } from '../cli/run.ts';
import { root } from '../support/bundles.ts';
import { tempDirectories } from '../support/files.ts';
import { createDocsCluster } from './commands-stage.ts';

/** A command line of a guide, with the result that the guide shows. */
interface DocCommand {
  readonly file: string;
  readonly line: number;
  readonly text: string;
  /** The status in the guide (`# status 1`), else 0 or 1. */
  readonly status: number | undefined;
  /** Lines of output; `…` matches any text, and alone on a line any lines. Undefined: the page shows no output. */
  readonly output: readonly string[] | undefined;
}

const OURS = /^(?:kubectl )?plumbline\b(?!-)/;
const NPM = /^npm /;
/** A comment before a block gives the reason why it is not run here. */
const NOT_RUN = /^<!-- not run[^:]*: .{10,} -->$/;
/**
 * Separate tests run all of these, in order: on the demo's cluster (test/demo/quickstart.test.ts) and on a real API server
 * (test/real/install/guide.test.ts).
 */
const RUN_ELSEWHERE = ['docs/get-started/quickstart.md', 'docs/tasks/connect-networks.md', 'docs/tasks/install.md'];
/** These need an agent or a QEMU on the local machine, which do not exist here. */
const ON_A_NODE = /^plumbline (?:ovs status|vm status|interference|qemu)\b/;

const guides = [
  'README.md',
  ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`),
].filter((name) => !RUN_ELSEWHERE.includes(name));

/**
 * Commands of fenced `console`, `sh` and `bash` blocks and of indented ones, and blocks that are neither run nor
 * marked.
 */
function readGuide(file: string): { commands: DocCommand[]; unmarked: string[] } {
  const lines = readFileSync(join(root, file), 'utf8').split('\n');
  const commands: DocCommand[] = [];
  const unmarked: string[] = [];
  for (let i = 0; i < lines.length; i++) {
    const fence = /^```(\w*)/.exec(lines[i] ?? '');
    const marked = NOT_RUN.test(lineBefore(lines, i));
    if (fence) {
      const end = lines.indexOf('```', i + 1);
      if (['console', 'sh', 'bash'].includes(fence[1] ?? '') && !marked) {
        const block = lines.slice(i + 1, end);
        const found = fence[1] === 'console' ? sessions(file, i + 2, block) : scripts(file, i + 2, block);
        commands.push(...found.commands);
        if (found.foreign) unmarked.push(`${file}:${i + 1}`);
      }
      i = end;
    } else if (/^ {4}\S/.test(lines[i] ?? '')) {
      let end = i;
      while (/^ {4}\S/.test(lines[end] ?? '')) end++;
      const block = lines.slice(i, end).map((line) => line.slice(4));
      // Indented blocks also contain output and pictures, so lines without a command of this project are skipped.
      if (!marked) commands.push(...scripts(file, i + 1, block).commands);
      i = end;
    }
  }
  return { commands, unmarked };
}

/** The previous line that is not blank. */
function lineBefore(lines: readonly string[], at: number): string {
  return lines.slice(0, at).findLast((line) => line.trim() !== '') ?? '';
}

function sessions(file: string, first: number, block: readonly string[]) {
  const commands: DocCommand[] = [];
  let foreign = false;
  for (let i = 0; i < block.length; i++) {
    if (!block[i]?.startsWith('$ ')) continue;
    let end = i + 1;
    while (end < block.length && !block[end]?.startsWith('$ ')) end++;
    const text = block[i]!.slice(2);
    if (OURS.test(text)) commands.push(command(file, first + i, text, block.slice(i + 1, end)));
    else foreign = true;
  }
  return { commands, foreign };
}

function scripts(file: string, first: number, block: readonly string[]) {
  const commands: DocCommand[] = [];
  let foreign = false;
  for (const [i, text] of block.entries()) {
    if (OURS.test(text) || NPM.test(text)) commands.push(command(file, first + i, text, undefined));
    else if (text.trim() !== '' && !text.startsWith('#')) foreign = true;
  }
  return { commands, foreign };
}

function command(file: string, line: number, text: string, output: readonly string[] | undefined): DocCommand {
  const [, status] = /#.*status (\d)/.exec(text) ?? [];
  const bare = text.replace(/\s+# .*$/, '').replace(/^kubectl plumbline/, 'plumbline');
  return { file, line, text: bare, status: status === undefined ? undefined : Number(status), output };
}

/** Words in capitals are placeholders; files that exist only on a host are next to the test. */
const STAND_INS: readonly (readonly [RegExp, string])[] = [
  [/\bNAMESPACE\b/g, 'tenants'],
  [/\bNAME\b/g, 'firewall'],
  // The watch of DPUs takes as long as its flag.
  [/^plumbline doctor( dpu)?$/g, '$& --watch 1'],
  // It serves until it is stopped; console.test.ts runs it.
  [/^plumbline console$/g, 'plumbline console --help'],
];

const VMS = `
apiVersion: kubevirt.io/v1
kind: VirtualMachine
metadata: { name: firewall }
spec:
  template:
    spec: { domain: { cpu: { cores: 4, dedicatedCpuPlacement: true } } }
`;

/** Whether output matches a guide. */
function matches(shown: readonly string[], printed: string): boolean {
  const escaped = shown.map((line) => line.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  const pattern = escaped.map((line) => (line === '…' ? '(?:.*\\n)*' : `${line.replaceAll('…', '.*')}\\n`)).join('');
  return new RegExp(`^${pattern}$`).test(printed);
}

const read = guides.map(readGuide);

describe('commands of the guides', function () {
  this.timeout(300_000);
  let cluster: FixtureCluster;
  const temp = tempDirectories();
  let directory: string;

  before(async () => {
    buildCli();
    cluster = await createDocsCluster();
    directory = temp();
    writeFileSync(join(directory, 'plumbline'), `#!/bin/sh\nexec "${process.execPath}" "${PROGRAM}" "$@"\n`, {
      mode: 0o755,
    });
    writeFileSync(join(directory, 'vms.yaml'), VMS);
    writeFileSync(join(directory, 'replay.json'), JSON.stringify(contradictedPrediction('worker-1')));
  });
  after(() => cluster.stop());

  const run = (text: string) =>
    new Promise<{ status: number; output: string }>((resolve) => {
      const line = STAND_INS.reduce((all, [pattern, stand]) => all.replaceAll(pattern, stand), text);
      const { NO_COLOR: _, FORCE_COLOR: __, COLUMNS: ___, ...rest } = process.env;
      const env = { ...rest, PATH: `${directory}:${process.env.PATH}`, KUBECONFIG: cluster.kubeconfig };
      execFile('sh', ['-c', `${line} 2>&1`], { cwd: directory, env }, (error, stdout) => {
        resolve({ status: error === null ? 0 : Number(error.code), output: stdout });
      });
    });

  it('exist, and every block is run or gives the reason why not', () => {
    assert.ok(read.flatMap(({ commands }) => commands).length > 20);
    assert.equal(read.flatMap(({ unmarked }) => unmarked).join(), '');
  });

  for (const { file, line, text, status, output } of read.flatMap(({ commands }) => commands)) {
    it(`${file}:${line}: ${text}`, async () => {
      if (NPM.test(text)) {
        const named = [...text.matchAll(/npm (?:run )?(?:-\S+ |--\S+ )*([\w:]+)/g)].map(([, name = '']) => name);
        const known = new Set([...Object.keys(packageJson.scripts), 'ci', 'install', 'i', 'link']);
        assert.equal(named.filter((name) => !known.has(name)).join(), '');
        return;
      }
      const ran = await run(text);
      const isUsual = ran.status <= 1 || ([3, 4].includes(ran.status) && ON_A_NODE.test(text));
      assert.ok(status === undefined ? isUsual : ran.status === status, `status ${ran.status}: ${ran.output}`);
      if (output !== undefined) assert.ok(matches(output, ran.output), `it printed:\n${ran.output}`);
    });
  }

  it('include every command of the tool in docs/reference/cli.md', async () => {
    const { output } = await run('plumbline __complete ""');
    const names = output
      .trim()
      .split('\n')
      .map((one) => one.split('\t')[0] ?? '');
    const page = readFileSync(join(root, 'docs/reference/cli.md'), 'utf8');
    assert.equal(names.filter((name) => !new RegExp(`^\\| \`.*${name}\\b`, 'm').test(page)).join(), '');
  });
});
