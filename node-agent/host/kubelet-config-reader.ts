import { join, relative } from 'node:path';
import { POD_RESOURCES_SOCKET } from '../../kube/kubelet-api/pod-resources-client.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { Backoff, monotonicSeconds } from '../../runtime/time.ts';
import type { AgentLogger, AgentMessages } from '../telemetry/log-messages.ts';
import { KubeletConfigError, kubeletConfigOf, type NodeKubeletConfig, readSettings } from './kubelet-config.ts';
import { type ConfigzOptions, servingOf } from './kubelet-configz.ts';
import { findKubelet, type KubeletProcess, kubeletFlagsOf } from './kubelet-process.ts';

export interface KubeletConfigReading {
  readonly config: NodeKubeletConfig | undefined;
  readonly problems: readonly string[];
}

export interface KubeletConfigSources {
  /** The directory where the agent sees the kubelet's root directory. */
  readonly kubeletDir: string;
  /** The administrator's --kubelet-config and --kubelet-config-dir, instead of those of the kubelet's command line. */
  readonly config?: string | undefined;
  readonly configDir?: string | undefined;
  /** The address of /configz; undefined: as configured. */
  readonly endpoint?: string | undefined;
  /** Queries the running kubelet; undefined if that is disabled. @throws Error with the reason */
  readonly configz?: ((at: Omit<ConfigzOptions, 'token'>) => Promise<NodeKubeletConfig>) | undefined;
  /** Identifies one run of the kubelet; '' while it is not running. */
  readonly generation?: (() => string) | undefined;
  readonly root?: string | undefined;
}

/** Seconds until the next query after a kubelet refused or did not answer: initially and at most. */
const REFUSED_FOR = { first: 1, most: 60 };
/** The most while no file has the settings either: the report has them 15 s after the kubelet is ready. */
const MAX_UNKNOWN_SECONDS = 5;
/** K3s contains the kubelet, gives it this directory and shows no flags: here are its certificate and port. */
const K3S_CONFIG_DIR = '/var/lib/rancher/k3s/agent/etc/kubelet.conf.d';
const REMEDY = 'allow nodes/configz, or see docs/reference/kubernetes-distributions.md';

/**
 * The settings of one run of the kubelet. Owner: that run. Age: an answer of the kubelet, and files that are older than
 * its start, are valid as long as it runs. End: the next run.
 */
interface SettingsOfRun {
  readonly id: string;
  answer?: NodeKubeletConfig | undefined;
  host?: HostReading;
}

/** Reads from the running kubelet if allowed, otherwise from files and flags. */
export class KubeletConfigReader {
  readonly #sources: KubeletConfigSources;
  readonly #log: AgentLogger;
  readonly #nowSeconds: () => number;
  readonly #problems: ProblemLog<AgentMessages>;
  readonly #refused = new Backoff(REFUSED_FOR);
  #run: SettingsOfRun = { id: '' };
  /** Monotonic seconds. */
  #nextQueryAt = 0;
  #refusal = '';
  #logged = '';
  #reading: Promise<KubeletConfigReading> | undefined;

  /** @param nowSeconds monotonic seconds */
  constructor(sources: KubeletConfigSources, log: AgentLogger, nowSeconds: () => number = monotonicSeconds) {
    this.#sources = sources;
    this.#log = log;
    this.#nowSeconds = nowSeconds;
    this.#problems = new ProblemLog(log);
  }

  readonly read = async (): Promise<KubeletConfigReading> => {
    this.#reading ??= this.#readRun().finally(() => {
      this.#reading = undefined;
    });
    const result = await this.#reading;
    this.#announce(result);
    return result;
  };

  async #readRun(): Promise<KubeletConfigReading> {
    const { configz, generation = () => '', root = '/' } = this.#sources;
    const run = this.#currentRun(generation());
    const isDue = configz !== undefined && this.#nowSeconds() >= this.#nextQueryAt;
    const valid = run.answer ?? (isDue ? undefined : run.host?.config);
    if (valid !== undefined) return { config: valid, problems: [] };
    const host = run.host ?? (await readHost(this.#sources, root));
    const { at, config, isWhole, problem = '' } = host;
    const maxPauseSeconds = config === undefined ? MAX_UNKNOWN_SECONDS : REFUSED_FOR.most;
    const answer = isDue ? await this.#query(at, maxPauseSeconds) : undefined;
    // After a restart in the meantime, it is not known which kubelet this was.
    if (run.id !== '' && run.id === generation()) {
      run.answer = answer;
      if (isWhole) run.host = host;
    }
    const result = answer ?? config;
    return { config: result, problems: result === undefined ? [problem] : [] };
  }

  #currentRun(id: string): SettingsOfRun {
    if (id === '' || id === this.#run.id) return this.#run;
    this.#run = { id };
    this.#nextQueryAt = 0;
    this.#refused.reset();
    return this.#run;
  }

  async #query(at: HostReading['at'], maxPauseSeconds: number): Promise<NodeKubeletConfig | undefined> {
    const { configz, endpoint } = this.#sources;
    try {
      const answer = await configz?.({ ...at, ...(endpoint && { endpoint }) });
      this.#refusal = '';
      return answer;
    } catch (error) {
      const { message: reason } = error as Error;
      const isNew = reason !== this.#refusal;
      if (isNew) this.#log.info({ reason }, 'kubelet configz unavailable; reading its configuration files');
      this.#refusal = reason;
      return undefined;
    } finally {
      this.#nextQueryAt = this.#nowSeconds() + Math.min(maxPauseSeconds, this.#refused.next());
    }
  }

  #announce(result: KubeletConfigReading): void {
    const text = JSON.stringify(result);
    if (text === this.#logged) return;
    this.#logged = text;
    for (const problem of result.problems) this.#problems.failed(problem, 'kubelet configuration unknown');
    if (result.config === undefined) return;
    this.#problems.recovered();
    const { source, cpuManager, topologyManager, reserved } = result.config;
    this.#log.info({ source, cpuManager, topologyManager, reserved }, 'kubelet configuration read');
  }
}

interface HostReading {
  readonly at: Omit<ConfigzOptions, 'token'>;
  readonly config?: NodeKubeletConfig;
  /** Whether the kubelet's process was found, so that another read in the same run would say the same. */
  readonly isWhole?: boolean;
  readonly problem?: string;
}

interface ProcessReading {
  readonly kubelet: KubeletProcess | undefined;
  readonly flags?: ReturnType<typeof kubeletFlagsOf>;
  /** Why there are no flags. */
  readonly problem?: string;
}

async function readProcess(kubeletDir: string, root: string): Promise<ProcessReading> {
  let kubelet: KubeletProcess | undefined;
  try {
    kubelet = await findKubelet(join(root, kubeletDir, POD_RESOURCES_SOCKET), root);
    if (kubelet.args !== undefined) return { kubelet, flags: kubeletFlagsOf(kubelet.args) };
    return { kubelet, problem: `the kubelet is part of ${kubelet.program}, which shows no flags of it; ${REMEDY}` };
  } catch (error) {
    return { kubelet, problem: `the kubelet's process: ${(error as Error).message}; ${REMEDY}` };
  }
}

/** What the host says about its kubelet: the flags of its process, and the files that they or the administrator name. */
async function readHost(sources: KubeletConfigSources, root: string): Promise<HostReading> {
  const { kubeletDir } = sources;
  const { kubelet, flags, problem } = await readProcess(kubeletDir, root);
  /** The kubelet's path, as the agent sees it. */
  const agentPath = (path: string | undefined): string | undefined => {
    const below = flags && path !== undefined ? relative(flags.rootDir, path) : '..';
    return below.startsWith('..') ? path : join(kubeletDir, below);
  };
  const isStated = sources.config !== undefined || sources.configDir !== undefined;
  const config = sources.config ?? agentPath(flags?.config);
  const isK3s = !isStated && flags === undefined && kubelet?.program.startsWith('k3s') === true;
  const configDir = sources.configDir ?? agentPath(flags?.configDir) ?? (isK3s ? K3S_CONFIG_DIR : undefined);
  const readBefore = flags === undefined ? undefined : kubelet?.listensSince;
  const locate = (settings: unknown) => {
    const { certificates, ...at } = servingOf(settings, agentPath(flags?.certDir) ?? join(kubeletDir, 'pki'));
    return { ...at, certificates: certificates.map((file) => join(root, file)) };
  };
  try {
    const { source, settings } = await readSettings({ config, configDir, flags: flags?.settings, readBefore, root });
    const at = locate(settings);
    // A statement stands for flags that cannot be seen, not for flags that are wrong.
    const isBlind = kubelet?.args === undefined;
    if (flags === undefined && !(isStated && isBlind)) return { at, problem: problem ?? '' };
    return { at, config: kubeletConfigOf(source, settings), isWhole: kubelet !== undefined };
  } catch (error) {
    if (!(error instanceof KubeletConfigError)) throw error;
    return { at: locate(flags?.settings), problem: `${error.message}; ${REMEDY}` };
  }
}
