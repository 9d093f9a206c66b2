import { join, relative } from 'node:path';
import { POD_RESOURCES_SOCKET } from '../../kube/kubelet-api/pod-resources-client.ts';
import { ProblemLog } from '../../runtime/problem-log.ts';
import { Backoff } from '../../runtime/time.ts';
import type { AgentLogger } from '../telemetry/log-messages.ts';
import { KubeletConfigError, kubeletConfigOf, type NodeKubeletConfig } from './kubelet-config.ts';
import { readSettings } from './kubelet-config-files.ts';
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

/** One run of the kubelet: what it answered, or else what its files and flags say. */
interface Run {
  readonly id: string;
  answer?: NodeKubeletConfig | undefined;
  settled?: NodeKubeletConfig | undefined;
}

/** Seconds until the next query after a kubelet refused or did not answer: initially and at most. */
const REFUSED_FOR = { first: 5, most: 60 };
/** K3s contains the kubelet, gives it this directory and shows no flags: here are its certificate and port. */
const K3S_CONFIG_DIR = '/var/lib/rancher/k3s/agent/etc/kubelet.conf.d';
const REMEDY = 'allow nodes/configz, or see docs/reference/kubernetes-distributions.md';

/** From the running kubelet if allowed, otherwise from files and flags; valid until the kubelet starts again. */
export function createKubeletConfigReader(
  sources: KubeletConfigSources,
  log: AgentLogger,
  now: () => number = () => performance.now() / 1000,
) {
  const { configz, generation = () => '', endpoint, root = '/' } = sources;
  const problems = new ProblemLog(log);
  let last = '';
  let run: Run = { id: '' };
  let nextQueryAt = 0;
  let refusal = '';
  let reading: Promise<KubeletConfigReading> | undefined;
  const refused = new Backoff(REFUSED_FOR);

  const query = async (at: HostReading['at']): Promise<NodeKubeletConfig | undefined> => {
    try {
      const answer = await configz?.({ ...at, ...(endpoint && { endpoint }) });
      refusal = '';
      return answer;
    } catch (error) {
      const why = (error as Error).message;
      if (why !== refusal) log.info({ reason: why }, 'kubelet configz unavailable; reading its configuration files');
      refusal = why;
      return undefined;
    } finally {
      nextQueryAt = now() + refused.next();
    }
  };

  const currentRun = (): Run => {
    const id = generation();
    if (id === '' || id === run.id) return run;
    run = { id };
    nextQueryAt = 0;
    refused.reset();
    return run;
  };

  const read = async (): Promise<KubeletConfigReading> => {
    const kubelet = currentRun();
    const isDue = configz !== undefined && now() >= nextQueryAt;
    const valid = kubelet.answer ?? (isDue ? undefined : kubelet.settled);
    if (valid !== undefined) return { config: valid, problems: [] };
    const { at, config, isWhole, problem = '' } = await readHost(sources, root);
    const answer = isDue ? await query(at) : undefined;
    // After a restart in the meantime, it is not known which kubelet this was.
    if (kubelet.id !== '' && kubelet.id === generation()) {
      kubelet.answer = answer;
      if (isWhole) kubelet.settled ??= config;
    }
    const result = answer ?? kubelet.settled ?? config;
    return { config: result, problems: result === undefined ? [problem] : [] };
  };

  return async (): Promise<KubeletConfigReading> => {
    reading ??= read().finally(() => {
      reading = undefined;
    });
    const result = await reading;
    const text = JSON.stringify(result);
    if (text === last) return result;
    last = text;
    for (const problem of result.problems) problems.failed(problem, 'kubelet configuration unknown');
    if (result.config === undefined) return result;
    problems.recovered();
    const { source, cpuManager, topologyManager, reserved } = result.config;
    log.info({ source, cpuManager, topologyManager, reserved }, 'kubelet configuration read');
    return result;
  };
}

interface HostReading {
  readonly at: Omit<ConfigzOptions, 'token'>;
  readonly config?: NodeKubeletConfig;
  readonly isWhole?: boolean;
  readonly problem?: string;
}

/** What the host says about its kubelet: the flags of its process, and the files that they or the administrator name. */
async function readHost(sources: KubeletConfigSources, root: string): Promise<HostReading> {
  const { kubeletDir } = sources;
  let kubelet: KubeletProcess | undefined;
  let flags: ReturnType<typeof kubeletFlagsOf> | undefined;
  let problem: string | undefined;
  try {
    kubelet = await findKubelet(join(root, kubeletDir, POD_RESOURCES_SOCKET), root);
    if (kubelet.args === undefined)
      problem = `the kubelet is part of ${kubelet.program}, which shows no flags of it; ${REMEDY}`;
    else flags = kubeletFlagsOf(kubelet.args);
  } catch (error) {
    problem = `the kubelet's process: ${(error as Error).message}; ${REMEDY}`;
  }
  /** The kubelet's path, as the agent sees it. */
  const seen = (path: string | undefined): string | undefined => {
    const below = flags && path !== undefined ? relative(flags.rootDir, path) : '..';
    return below.startsWith('..') ? path : join(kubeletDir, below);
  };
  const isStated = sources.config !== undefined || sources.configDir !== undefined;
  const config = sources.config ?? seen(flags?.config);
  const isK3s = !isStated && flags === undefined && kubelet?.program.startsWith('k3s') === true;
  const configDir = sources.configDir ?? seen(flags?.configDir) ?? (isK3s ? K3S_CONFIG_DIR : undefined);
  const readBefore = flags === undefined ? undefined : kubelet?.listensSince;
  const locate = (settings: unknown) => {
    const { certificates, ...at } = servingOf(settings, seen(flags?.certDir) ?? join(kubeletDir, 'pki'));
    return { ...at, certificates: certificates.map((file) => join(root, file)) };
  };
  try {
    const { source, settings } = await readSettings({ config, configDir, flags: flags?.settings, readBefore, root });
    const at = locate(settings);
    // A statement stands for flags that cannot be seen, not for flags that are wrong.
    const isBlind = kubelet?.args === undefined;
    if (flags === undefined && !(isStated && isBlind)) return { at, problem: problem ?? '' };
    return { at, config: kubeletConfigOf(source, settings), isWhole: flags !== undefined };
  } catch (error) {
    if (!(error instanceof KubeletConfigError)) throw error;
    return { at: locate(flags?.settings), problem: `${error.message}; ${REMEDY}` };
  }
}
