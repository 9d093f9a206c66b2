import assert from 'node:assert/strict';
import { execFile, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { stringify } from 'yaml';
import { createProgram } from '../cli/program.ts';
import { useCluster } from './cli/cluster-fixture.ts';
import { assertFails, buildCli, PROGRAM, plumbline } from './cli/run.ts';
import { tempDirectories } from './support/files.ts';
import { kubeconfigOf } from './support/kubeconfig.ts';
import { listenOnLoopback } from './support/processes.ts';

/** The answer of a case's API server to every request. */
interface Answer {
  readonly status: number;
  readonly body: string;
}

const failure = (status: number, reason: string, message = reason): Answer => ({
  status,
  body: JSON.stringify({ kind: 'Status', status: 'Failure', reason, message, code: status }),
});

describe('reports an error in one line, with the next step', function () {
  this.timeout(300_000);
  const temp = tempDirectories();
  let directory: string;
  let server: Server;
  let answer: Answer;
  let url: string;

  before(async () => {
    buildCli();
    directory = temp();
    server = createServer((_, response) => response.writeHead(answer.status).end(answer.body));
    url = `http://127.0.0.1:${await listenOnLoopback(server)}`;
  });
  after(() => server.close());

  const kubeconfig = (name: string, content: object | string): string => {
    const path = join(directory, name);
    writeFileSync(path, typeof content === 'string' ? content : stringify(content));
    return path;
  };

  describe('wrong flags: status 2', () => {
    const cases: readonly [readonly string[], RegExp][] = [
      [['explian'], /unknown command 'explian' \(Did you mean explain\?\); see plumbline --help/],
      [['help', 'foo'], /unknown command 'foo'; see plumbline --help/],
      [['explain'], /missing required argument 'kind'; see plumbline explain --help/],
      [['explain', 'vm', 'a', 'b'], /it takes at most 2 arguments, got 3/],
      [['explain', 'vm/a', 'vm/b'], /one VM or pod at a time/],
      [['explain', 'vm', 'x'.repeat(100_000)], /^.{0,100}a name has at most 253 characters, not 100000.{0,100}$/s],
      [['status', '-n', ''], /--namespace.*expected a name of 1 to 253 characters/],
      [['cpu-mask', 'parse', ''], /the mask is empty/],
      [['explain', 'vm', 'a', '--outptu', 'json'], /unknown option '--outptu' \(Did you mean --output\?\)/],
      [['explain', 'vm', 'a', '-o', 'xml'], /format 'xml': use json, yaml, wide, name; see plumbline explain --help/],
      [['explain', 'vm', 'a', '--request-timeout', 'soon'], /--request-timeout 'soon': expected seconds/],
      [['explain', 'pod', 'a', '--extender'], /argument missing/],
      [['top', '--watch', 'worker-1'], /expected 0.2 to 3600 seconds; give names before --watch/],
      [['doctor', 'everything'], /unknown area 'everything': use preflight, .*, pods; see plumbline doctor --help/],
      [['--context', 'x'], /--context/],
      [['--context', 'x', 'topology'], /unknown option '--context'.*; see plumbline topology --help/],
      [['ovs'], /a command is missing; see plumbline ovs --help/],
      [['ovs', 'status', '--node', 'a'], /unknown option '--node'.*; see plumbline ovs status --help/],
      [['cpu-mask', 'convert', '1'], /'--to <form>' not specified; see plumbline cpu-mask convert --help/],
      [['explain', 'deployment/foo'], /deployment\/foo: cannot explain a deployment, only a VM or a pod/],
    ];
    for (const [args, message] of cases) {
      it(args.join(' '), async () => {
        assertFails(await plumbline(args), 2, message);
      });
    }
  });

  describe('unreachable cluster: status 3', () => {
    const at = (name: string, server: string) => ['--kubeconfig', kubeconfig(name, kubeconfigOf({ server }))];
    const NOTHING_LISTENS =
      /cannot reach .*nothing listens there.* \(context here, server https:\/\/127\.0\.0\.1:1\)$/m;
    const cases: readonly [string, () => readonly string[], RegExp][] = [
      ['no kubeconfig', () => [], /no kubeconfig found: give --kubeconfig/],
      ['a missing file', () => ['--kubeconfig', '/nonexistent'], /cannot read the kubeconfig \/nonexistent/],
      [
        'an empty file',
        () => ['--kubeconfig', kubeconfig('empty', '')],
        /the kubeconfig .*empty: .* the input is empty/,
      ],
      ['no listener', () => at('dead', 'https://127.0.0.1:1'), NOTHING_LISTENS],
      ['an unresolvable name', () => at('dns', 'https://nowhere.invalid'), /cannot reach .*name does not resolve/],
    ];
    for (const [title, args, message] of cases) {
      it(title, async () => {
        const ran = await plumbline(['top', ...args()]);
        assertFails(ran, 3, message);
        assert.deepEqual(await plumbline([...args(), 'top']), ran, 'flags may precede the command');
      });
    }

    for (const [names, message] of [
      ['/nonexistent', /KUBECONFIG names \/nonexistent, which does not exist: correct it, or give --kubeconfig/],
      ['/none:/other', /KUBECONFIG names \/none and \/other, none of which exists/],
    ] as const) {
      it(`KUBECONFIG=${names}`, async () => {
        const ran = await plumbline(['ovs', 'status', 'a'], { kubeconfig: names });
        assertFails(ran, 3, message);
        const before = await plumbline(['--context=x', '-n', 'top', 'status', '-A'], { kubeconfig: names });
        assert.match(before.stderr, message);
      });
    }
  });

  describe('an error or an invalid answer of the cluster: status 3', () => {
    const DENIED = 'nodetopologies.plumbline.dev is forbidden: User "me" cannot list resource';
    const ASK =
      /not allowed: .* User "me" cannot list resource; ask .* in docs\/reference\/cli-doctor.md \(context here, /;
    const NO_DEFINITION = /Plumbline is not installed there, or its definition was deleted: plumbline doctor installed/;
    const EMPTY = '{"metadata":{"resourceVersion":"1"},"items":[]}';
    const API = 'check that the server in the kubeconfig is an API server';
    const cases: readonly [string, Answer, RegExp][] = [
      ['invalid credentials', failure(401, 'Unauthorized'), /API server rejects the credentials \(401\): log in again/],
      ['denied access', failure(403, 'Forbidden', DENIED), ASK],
      ['a missing definition', failure(404, 'NotFound'), NO_DEFINITION],
      ['missing reports', { status: 200, body: EMPTY }, /no node reports its topology; check that the agents run/],
      ['invalid JSON', { status: 200, body: '<html>' }, new RegExp(`is not JSON; ${API}`)],
      ['not a list', { status: 200, body: '[1]' }, new RegExp(`the answer is not a list; ${API}`)],
      ['a proxy in between', { status: 502, body: 'Bad Gateway' }, /502 HTTP502/],
    ];
    for (const [title, given, message] of cases) {
      it(title, async () => {
        answer = given;
        const ran = await plumbline(['top', '--kubeconfig', kubeconfig('fake', kubeconfigOf({ server: url }))]);
        assertFails(ran, 3, message);
      });
    }
  });

  describe('with a cluster', () => {
    const cluster = useCluster(async (made) => {
      await made.node('worker-1');
      await made.pod('firewall');
    });

    it('exits with status 4 and the existing names for an unknown name', async () => {
      const ran = await cluster.run('explain', 'pod', 'firewal');
      assertFails(ran, 4, /no pod firewal in namespace default \(it has firewall\); choose another namespace with -n/);
    });

    it('shows no empty default in a help text', async () => {
      for (const command of (await createProgram('plumbline', () => false)).commands) {
        const { stdout } = await plumbline([command.name(), '--help']);
        assert.doesNotMatch(stdout, /default:\s+(\{\}|\[\])/, command.name());
      }
    });

    for (const args of ['top --once', 'top --once -o json', '--help', 'version']) {
      it(`reports in one line that it cannot write: ${args}`, async () => {
        const script = `"$NODE" "$PROGRAM" ${args} > /dev/full`;
        const env = { ...process.env, NODE: process.execPath, PROGRAM, KUBECONFIG: cluster.kubeconfig };
        const ran = await promisify(execFile)('bash', ['-c', script], { env }).catch((error: unknown) => error);
        const { code, stderr } = ran as { readonly code?: number; readonly stderr: string };
        const message = 'plumbline: cannot write to standard output: ENOSPC: no space left on device, write\n';
        assert.deepEqual([code, stderr], [1, message]);
      });
    }

    it('succeeds if the reader closes the pipe after the first line', () => {
      const script = '"$NODE" "$PROGRAM" explain --help | head -c 1; exit $PIPESTATUS';
      const env = { ...process.env, NODE: process.execPath, PROGRAM };
      const { status, stderr } = spawnSync('bash', ['-c', script], { env, encoding: 'utf8' });
      assert.deepEqual([status, stderr], [0, '']);
    });
  });
});
