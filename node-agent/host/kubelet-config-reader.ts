import type { Logger } from '../../runtime/log.ts';
import { Backoff } from '../../runtime/time.ts';
import type { KubeletConfig } from './kubelet-config.ts';
import { findKubeletConfig, type KubeletConfigFinding } from './kubelet-config-files.ts';

export interface KubeletConfigReading {
  readonly config: KubeletConfig | undefined;
  /** Why the configuration is not available. */
  readonly problems: readonly string[];
}

export interface KubeletConfigSources {
  /** Queries the running kubelet; undefined if that is disabled. @throws Error with the reason */
  readonly configz?: (() => Promise<KubeletConfig>) | undefined;
  /** Identifies one run of the kubelet. */
  readonly generation?: (() => string) | undefined;
  /** Candidate files; the first KubeletConfiguration among them is used. */
  readonly candidates: readonly string[];
  /** The kubelet's --config-dir. */
  readonly dropIns?: string | undefined;
}

/** Seconds until the next query after a kubelet refused or did not answer: initially and at most. */
const REFUSED_FOR = { first: 5, most: 60 };

/**
 * Reads the kubelet's configuration: from the running kubelet where that is allowed, otherwise from its files. A
 * kubelet does not change its configuration while it runs, so after an answer there is no further query: every report
 * and every container's start waits for this. It logs the result when it differs from the last one.
 */
export function createKubeletConfigReader(
  { configz, generation = () => '', candidates, dropIns }: KubeletConfigSources,
  log: Logger,
  now: () => number = () => performance.now() / 1000,
) {
  let last = '';
  let reported: KubeletConfig | undefined;
  let asking: Promise<void> | undefined;
  let asked: string | undefined;
  let askAgainAt = 0;
  let refusal = '';
  const refused = new Backoff(REFUSED_FOR);

  const ask = async (question: NonNullable<typeof configz>, kubelet: string): Promise<void> => {
    let answer: KubeletConfig | undefined;
    try {
      answer = await question();
      refusal = '';
    } catch (error) {
      const why = (error as Error).message;
      if (why !== refusal) log.info({ why }, 'kubelet configz unavailable; reading its configuration files');
      refusal = why;
    }
    if (kubelet !== asked) return;
    reported = answer;
    asking = undefined;
    askAgainAt = now() + refused.next();
  };

  const askKubelet = async (): Promise<KubeletConfig | undefined> => {
    if (configz === undefined) return undefined;
    const kubelet = generation();
    if (kubelet !== asked) {
      asked = kubelet;
      reported = undefined;
      asking = undefined;
      askAgainAt = 0;
      refused.reset();
    }
    if (reported === undefined && asking === undefined && now() >= askAgainAt) asking = ask(configz, kubelet);
    if (reported === undefined) await asking;
    return reported;
  };

  const say = (problems: readonly string[], config: KubeletConfig | undefined) => {
    const text = JSON.stringify([problems, config]);
    if (text === last) return;
    last = text;
    for (const problem of problems) log.warn(problem);
    if (config === undefined) return;
    const { source, cpuManager, topologyManager, reserved } = config;
    log.info({ source, cpuManager, topologyManager, reserved }, 'kubelet configuration read');
  };

  return async (): Promise<KubeletConfigReading> => {
    const reported = await askKubelet();
    if (reported !== undefined) {
      say([], reported);
      return { config: reported, problems: [] };
    }
    const findings = await findKubeletConfig(candidates, dropIns);
    const found = findings.find((finding) => finding.kind === 'found')?.config;
    const problems = findings.map(describe).filter((text) => text !== undefined);
    say(problems, found);
    return { config: found, problems: found === undefined ? problems : [] };
  };
}

function describe(finding: KubeletConfigFinding): string | undefined {
  switch (finding.kind) {
    case 'found':
      return undefined;
    case 'absent':
      return `${finding.file} does not exist; name the kubelet's configuration with --kubelet-config`;
    case 'kubeconfig':
      return `${finding.file} is a kubeconfig, not a KubeletConfiguration; ignored`;
    case 'invalid':
      return finding.error.message;
  }
}
