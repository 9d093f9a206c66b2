import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gateFilesIn } from '../../node-agent/gate/settings.ts';
import { root } from '../support/bundles.ts';
import { endGroup } from '../support/children.ts';
import { needs, pathOf } from '../support/parts.ts';

/** A system call of the program, as strace prints it. */
export interface SystemCall {
  readonly name: string;
  readonly args: string;
  /** -1 for an error, and for a call that a signal interrupted. */
  readonly result: number;
}

/** A wait system call of the program, which does not depend on the speed of the machine. */
interface Wait {
  /** Timeout in milliseconds; -1: none. */
  readonly most: number;
  /** It ended by its timeout. */
  readonly ranOut: boolean;
}

const CALL = /^(?:\d+ +)?(\w+)\((.*)\)\s+= (-?\d+|\?)/;

/** A delegate of every fixture: it accepts each call, and returns an empty result of CNI 1.1.0 for ADD. */
export const PASS = 'pass';
/** A configuration of the newest version with that delegate. */
export const GATED = { cniVersion: '1.1.0', name: 'net', type: 'plumbline-gate', delegate: { type: PASS } };

export type GateFixture = ReturnType<typeof createGateFixture>;

export interface GateCall {
  readonly verb?: string;
  readonly conf: object | string;
  /** Replaces variables of a runtime; undefined removes a variable. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** Records its waits; needs strace. */
  readonly traced?: boolean;
  /** Injects results of system calls as `strace -e inject=…`, and records all calls of the program; needs strace. */
  readonly faults?: readonly string[];
  /** A program that runs the plugin: its arguments end with the plugin's path. */
  readonly wrapper?: readonly string[];
  /** Injects into the delegate as well, before and after its execve(2). */
  readonly inDelegate?: boolean;
}

export interface GateResult {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
  /** Milliseconds from start to end: on a busy machine there is only a lower bound. */
  readonly millis: number;
  /** Waits of a traced call, in order. */
  readonly waits: readonly Wait[];
  /** System calls of a call with `faults`, in order. */
  readonly calls: readonly SystemCall[];
  /** Standard output as JSON. */
  json(): Record<string, unknown>;
}

/** The fixture of a suite, without a state file at the beginning of each test. */
export function useGate(): GateFixture {
  needs('musl');
  needs('make');
  let gate: GateFixture | undefined;
  before(() => {
    gate = createGateFixture();
  });
  after(() => gate?.remove());
  beforeEach(() => rmSync(gate?.state ?? '', { force: true }));
  return new Proxy({} as GateFixture, { get: (_, name) => Reflect.get(gate ?? {}, name) });
}

/** The shipped shim, built once into its own directory, with a place for delegates, socket and state. */
export function createGateFixture() {
  const directory = mkdtempSync(join(tmpdir(), 'plumbline-gate-'));
  const binDir = join(directory, 'bin');
  mkdirSync(binDir);
  execFileSync('make', ['-s', '-C', join(root, 'native/cni'), `OUT=${binDir}`], { stdio: 'pipe' });
  const shim = join(binDir, 'plumbline-gate');
  const { socket, state } = gateFilesIn(directory);
  const running = new Set<ChildProcess>();
  writeFileSync(
    join(binDir, PASS),
    `#!/bin/sh\ncat >/dev/null\n[ "$CNI_COMMAND" != ADD ] || printf '{"cniVersion":"1.1.0"}\\n'\n`,
    { mode: 0o755 },
  );
  return {
    directory,
    shim,
    /** The only directory of CNI_PATH. */
    binDir,
    socket,
    state,
    /** Also ends calls without an answer. */
    remove() {
      for (const child of running) endGroup(child);
      rmSync(directory, { recursive: true, force: true });
    },
    /** Calls it as a runtime does. */
    async call(called: GateCall): Promise<GateResult> {
      const { verb = 'ADD', conf, environment = {}, traced = false, faults, wrapper = [] } = called;
      const variables = {
        PATH: process.env['PATH'],
        CNI_COMMAND: verb,
        CNI_CONTAINERID: 'sandbox-1',
        CNI_NETNS: '/var/run/netns/none',
        CNI_IFNAME: 'eth0',
        CNI_PATH: binDir,
        CNI_ARGS: 'IgnoreUnknown=1;K8S_POD_NAMESPACE=default;K8S_POD_NAME=vm;K8S_POD_UID=uid-1',
        PLUMBLINE_RUN_DIR: directory,
        ...environment,
      };
      const present = Object.entries(variables).filter(([, value]) => value !== undefined);
      const env: NodeJS.ProcessEnv = Object.fromEntries(present);
      const input = typeof conf === 'string' ? conf : JSON.stringify(conf);
      if (!traced && faults === undefined) return run([...wrapper, shim], env, input, running);
      const trace = join(directory, 'trace');
      const traces = faults === undefined ? 'trace=poll,ppoll,nanosleep,clock_nanosleep' : 'trace=all';
      const injections = (faults ?? []).flatMap((fault) => ['-e', `inject=${fault}`]);
      const follow = called.inDelegate ? ['-f'] : [];
      const options = [...follow, '-o', trace, '-e', traces, ...injections, '-e', 'signal=none'];
      const result = await run([pathOf('strace'), '-qq', ...options, shim], env, input, running);
      const calls = callsOf(readFileSync(trace, 'utf8'));
      return { ...result, calls, waits: waitsOf(calls) };
    },
    /** Calls it. @returns its exit status, and the code and the message of its error */
    async outcome(called: GateCall): Promise<unknown[]> {
      const { code, stdout, json } = await this.call(called);
      const { code: cniCode, msg } = stdout === '' ? {} : json();
      return [code, cniCode, msg];
    },
    /** A delegate that records each call and then runs the shell script. */
    delegate(name: string, script: string) {
      const log = join(directory, `${name}.log`);
      const file = join(binDir, name);
      writeFileSync(file, `#!/bin/sh\nconf=$(cat)\nprintf '%s %s\\n' "$CNI_COMMAND" "$conf" >> '${log}'\n${script}\n`);
      chmodSync(file, 0o755);
      return {
        /** All calls so far: CNI_COMMAND and configuration. */
        calls: () =>
          // The shell may have opened the file, or written only a part of a line.
          (existsSync(log) ? readFileSync(log, 'utf8').split('\n').slice(0, -1) : []).map((line) => {
            const [verb = ''] = line.split(' ', 1);
            return { verb, conf: JSON.parse(line.slice(verb.length)) as Record<string, unknown> };
          }),
        verbs(): string {
          return this.calls()
            .map(({ verb }) => verb)
            .join();
        },
      };
    },
  };
}

/** Runs a program in a process group of its own, which is in the set until it ends. */
export function run(
  command: readonly string[],
  env: NodeJS.ProcessEnv,
  input: string,
  running = new Set<ChildProcess>(),
) {
  const [program = '', ...args] = command;
  return new Promise<GateResult>((resolve, reject) => {
    const begun = performance.now();
    const child = spawn(program, args, { env, stdio: 'pipe', detached: true });
    running.add(child);
    const [stdout, stderr]: [Buffer[], Buffer[]] = [[], []];
    child.stdout.on('data', (chunk: Buffer) => stdout.push(chunk));
    child.stderr.on('data', (chunk: Buffer) => stderr.push(chunk));
    child.on('error', reject);
    child.on('close', (code) => {
      running.delete(child);
      const text = Buffer.concat(stdout).toString();
      resolve({
        code,
        stdout: text,
        stderr: Buffer.concat(stderr).toString(),
        millis: performance.now() - begun,
        waits: [],
        calls: [],
        json: () => JSON.parse(text) as Record<string, unknown>,
      });
    });
    // A shim that refuses without reading everything closes the pipe.
    child.stdin.on('error', () => undefined);
    child.stdin.end(input);
  });
}

/** An agent of a suite, which does this with each connection. */
export function useAgent(gate: GateFixture, onConnection: (socket: Socket) => unknown): void {
  let server: Server | undefined;
  before(async () => {
    server = createServer((socket) => {
      socket.on('error', () => undefined);
      onConnection(socket);
    }).listen(gate.socket);
    await once(server, 'listening');
  });
  after(() => server?.close());
}

/** Writes the file of an agent; `at` defaults to now. */
export function writeState(path: string, state: object): void {
  const at = Number(process.hrtime.bigint() / 1_000_000n);
  writeFileSync(path, JSON.stringify({ at, ...state }));
}

/** The system calls of a trace that strace wrote with `-o`, in order; lines of another kind are skipped. */
function callsOf(trace: string): SystemCall[] {
  return trace.split('\n').flatMap((line) => {
    const [, name = '', args = '', result] = CALL.exec(line) ?? [];
    return name === '' ? [] : [{ name, args, result: result === '?' ? -1 : Number(result) }];
  });
}

/** The waits among system calls, in order. */
function waitsOf(calls: readonly SystemCall[]): Wait[] {
  const waits = calls.filter(({ name }) => ['poll', 'ppoll', 'nanosleep', 'clock_nanosleep'].includes(name));
  return waits.map(({ name, args, result }) => {
    const [, seconds, nanos] = /tv_sec=(\d+), tv_nsec=(\d+)/.exec(args) ?? [];
    const inTimespec = seconds === undefined ? -1 : Number(seconds) * 1000 + Number(nanos) / 1_000_000;
    return { most: name === 'poll' ? Number(/, (-?\d+)$/.exec(args)?.[1]) : inTimespec, ranOut: result === 0 };
  });
}
