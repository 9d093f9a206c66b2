import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { root } from '../support/bundles.ts';
import { eventually } from '../support/eventually.ts';
import { tempDirectories } from '../support/files.ts';
import { type GuideBlock, readBlocks } from '../support/guide-blocks.ts';
import { needs, skipWithout } from '../support/parts.ts';
import { projectFiles } from '../support/project-files.ts';
import type { Ran } from '../support/run-program.ts';

const CONNECT = 'docs/tasks/connect-networks.md';

/**
 * What is not run as it stands. `npm ci` is what continuous integration begins with, from an empty folder; here the
 * packages of this checkout are linked, so that a registry is not asked each time. `npm test` would run this test again,
 * and so runs one file. Words in capitals stand for the reader's own, in the README.
 */
const REPLACED: readonly (readonly [RegExp, string])[] = [
  [/^npm ci\b/, 'test -d node_modules'],
  [/\bnpm test\b/, 'npm test -- model/cpu-set.test.ts'],
  [/\bNAMESPACE\b/, 'demo'],
  [/\bNAME\b/, 'firewall'],
];

const replaced = (line: string) => REPLACED.reduce((text, [pattern, by]) => text.replace(pattern, by), line);

function clone(folder: string): void {
  for (const file of projectFiles()) {
    mkdirSync(dirname(join(folder, file)), { recursive: true });
    cpSync(join(root, file), join(folder, file), { verbatimSymlinks: true });
  }
  symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
}

/** A shell that a reader types into: what one line exports is there for the next. */
function openTerminal(cwd: string, path: string) {
  const { KUBECONFIG: _, NO_COLOR: __, FORCE_COLOR: ___, PLUMBLINE_DIST: ____, ...rest } = process.env;
  const env = { ...rest, PATH: path, npm_config_yes: 'false', npm_config_offline: 'true' };
  const shell = spawn('bash', ['--norc'], { cwd, env, stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  let seen = '';
  for (const stream of [shell.stdout, shell.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      seen += text;
    });
  }
  return {
    shell,
    seen: () => seen,
    type: (line: string) => shell.stdin.write(`${line}\n`),
    /** Types a line and waits for its end. */
    async run(line: string): Promise<Ran> {
      seen = '';
      shell.stdin.write(`{ ${line}\n} 2>&1; printf '\\n[ended %d]\\n' $?\n`);
      let end: RegExpExecArray | null = null;
      await eventually(
        () => {
          end = /\n\[ended (\d+)\]\n$/.exec(seen);
          return end !== null || shell.exitCode !== null;
        },
        `the end of ${line}; it printed: ${seen.slice(-2000)}`,
        300,
      );
      const [text = '', status] = (end as RegExpExecArray | null) ?? [];
      return { status: Number(status ?? 1), output: seen.slice(0, seen.length - text.length) };
    },
  };
}

const isOpen = ({ exitCode, signalCode }: ChildProcess) => exitCode === null && signalCode === null;

/** As the keys do: for everything that the terminal runs. */
async function pressCtrlC(shell: ChildProcess): Promise<void> {
  shell.stdin?.end();
  process.kill(-(shell.pid ?? 0), 'SIGINT');
  await eventually(() => !isOpen(shell), 'the terminal to end after Ctrl-C');
}

/** What a line has to print, by its beginning. A line that is not here has to end with 0 and print something. */
const SAID: readonly (readonly [RegExp, RegExp])[] = [
  [/^npm run demo$/, /\n7 of 7 steps succeeded in /],
  [/plumbline doctor/, /NetworkMapAgrees|no problems found/],
  [/plumbline top$/, /whole cores/],
  [/status -A/, /demo\/firewall .*NoNodeFits/],
  [/explain vm.firewall/, /What would help/],
  [/explain vm.forwarder/, /VM demo\/forwarder is running/],
  [/kubectl get nodes,/, /nodetopology\.plumbline\.dev\/numa1/],
  [/kubectl get nodetopologies/, /NETWORKS.*physnet0/s],
  [/kubectl explain/, /podUID\s+<string>/],
  [/kubectl apply.*quickstart-vm/, /virtualmachine\.kubevirt\.io\/two-cores created/],
  [/kubectl apply.*two-networks/, /networkattachmentdefinition\S+\/data created.*virtualmachine\S+\/gateway created/s],
  [/explain vm gateway/, /shares no core with other pods, and is near its networks/],
  [/kubectl get vms/, /virt-launcher-two-cores/],
  [/kubectl get events -n two-networks/, /from 3 to 4.*physnet\.plumbline\.dev\/physnet0/s],
  [/kubectl get events/, /PaddedToWholeCores/],
  [/kubectl delete/, /deleted/],
  [/simulate/, /placed|fit/],
  [/topology/, /NUMA|CPU/],
  [/npm test/, /\d+ passed, 0 failed/],
];
/** The README's first line: what the quickstart begins with. */
const SEEN_ALREADY = 'npm ci && npm run demo';
const QUIET = /^(?:export|npm ci|npm run -s)/;
/** Commands that end with 1 because they report something: status lists the VM that waits. */
const REPORTS = /status -A$/;
/** This machine's own Open vSwitch knows none of the demo's networks, which doctor says. */
const OWN_SWITCH = existsSync('/var/run/openvswitch/ovs-vswitchd.pid');

describe('the quickstart, from an empty folder', function () {
  needs('linux');
  this.timeout(900_000);
  const temp = tempDirectories();
  let folder: string;
  let bin: string;
  let demo: ReturnType<typeof openTerminal> | undefined;
  let terminal: ReturnType<typeof openTerminal>;

  before(() => {
    folder = join(temp(), 'plumbline');
    bin = temp();
    clone(folder);
    // `plumbline` of the README stands for an installed command.
    symlinkSync(join(folder, 'dist/plumbline.mjs'), join(bin, 'plumbline'));
    terminal = openTerminal(folder, `${process.env['PATH']}:${bin}`);
  });
  after(async () => {
    terminal.shell.stdin.end();
    if (demo !== undefined && isOpen(demo.shell)) await pressCtrlC(demo.shell);
  });

  const type = async (line: string) => {
    const { status, output } = await terminal.run(replaced(line));
    const mayFind = OWN_SWITCH && line.includes('doctor');
    const expected = REPORTS.test(line) ? 1 : 0;
    assert.ok(status === expected || (mayFind && status === 1), `status ${status}: ${output}`);
    const [, said] = SAID.find(([beginning]) => beginning.test(line)) ?? [];
    if (said !== undefined) assert.match(output, said);
    else if (!QUIET.test(line)) assert.notEqual(output.trim(), '', 'it printed nothing');
  };
  const stay = async (line: string) => {
    demo = openTerminal(folder, `${process.env['PATH']}`);
    demo.type(line);
    await eventually(
      () => /Ctrl-C stops it/.test(demo?.seen() ?? '') || demo?.shell.exitCode !== null,
      `${line}: ${demo.seen()}`,
    );
    assert.match(demo.seen(), /console: http:\/\/127\.0\.0\.1:\d+\//);
  };
  const titled = ({ lines, mark }: GuideBlock) =>
    lines.map((line) => ({ line, title: replaced(line) === line ? line : `${line} (as ${replaced(line)})`, mark }));

  const quickstart = readBlocks(join(root, 'docs/get-started/quickstart.md')).flatMap(titled);
  const readme = readBlocks(join(root, 'README.md')).flatMap(titled);
  const connect = readBlocks(join(root, CONNECT)).flatMap(titled);

  it('has commands, and the README starts with the same one', () => {
    assert.ok(quickstart.length > 15 && readme.length > 5 && connect.length > 6);
    assert.equal(`${quickstart[0]?.line} && ${quickstart[1]?.line}`, SEEN_ALREADY);
    assert.equal(readme[0]?.line, SEEN_ALREADY);
  });

  for (const { line, title, mark } of quickstart) {
    it(title, async function () {
      if (mark === 'needs kubectl') skipWithout('kubectl', this);
      if (mark === 'stays') await stay(line);
      else await type(line);
    });
  }

  it('--json printed only a JSON document', () => {
    const { succeeded } = JSON.parse(readFileSync(join(folder, 'steps.json'), 'utf8')) as { succeeded: boolean };
    assert.equal(succeeded, true);
  });

  // Against the cluster of the quickstart's demo, which is still there. Building again would take it away.
  for (const { line, title } of readme.filter((one) => one.line !== SEEN_ALREADY)) {
    it(`README: ${title}`, async () => {
      if (!/^plumbline console\b/.test(line)) return type(line);
      const page = openTerminal(folder, `${process.env['PATH']}:${bin}`);
      page.type(`export KUBECONFIG=demo.kubeconfig; ${line}`);
      await eventually(() => /console: http/.test(page.seen()) || page.shell.exitCode !== null, page.seen());
      const [, url = ''] = /console: (\S+)/.exec(page.seen()) ?? [];
      assert.match(await (await fetch(url)).text(), /<title>Plumbline/);
      await pressCtrlC(page.shell);
    });
  }

  for (const { line, title, mark } of connect) {
    it(`${CONNECT}: ${title}`, async function () {
      assert.equal(mark, '', 'every block is run');
      skipWithout('kubectl', this);
      await type(line);
    });
  }

  it(`${CONNECT} shows the file that it applies`, () => {
    const file = readFileSync(join(root, 'docs/tasks/two-networks.yaml'), 'utf8');
    assert.ok(readFileSync(join(root, CONNECT), 'utf8').includes(`\n\`\`\`yaml\n${file}\`\`\`\n`));
  });

  it('Ctrl-C ends the demo and removes its kubeconfig', async () => {
    assert.ok(demo);
    await pressCtrlC(demo.shell);
    await eventually(() => !existsSync(join(folder, 'demo.kubeconfig')), 'the kubeconfig to be gone');
  });
});
