import type { Logger } from '../../runtime/log.ts';
import type { KubeletConfig } from './kubelet-config.ts';
import { findKubeletConfig, type KubeletConfigFinding } from './kubelet-config-files.ts';

export interface KubeletConfigReading {
  readonly config: KubeletConfig | undefined;
  /** Why there is none. */
  readonly problems: readonly string[];
}

export interface KubeletConfigSources {
  /** Asks the running kubelet; undefined where that is not wanted. @throws Error saying why it cannot be asked */
  readonly configz?: (() => Promise<KubeletConfig>) | undefined;
  /** Files, the first KubeletConfiguration among which counts. */
  readonly candidates: readonly string[];
  /** The kubelet's --config-dir. */
  readonly dropIns?: string | undefined;
}

/** Seconds for which the running kubelet's answer, or its refusal, is not asked for again. */
const CONFIGZ_FOR = 60;

/**
 * Reads the kubelet's configuration: the running kubelet's own word where it may be asked, else its files, anew at each
 * call. Logs what it found when that differs from the last time.
 */
export function createKubeletConfigReader(
  { configz, candidates, dropIns }: KubeletConfigSources,
  log: Logger,
  now: () => number = () => performance.now() / 1000,
) {
  let last = '';
  let asked: { readonly at: number; readonly answer: Promise<KubeletConfig | undefined> } | undefined;
  let refusal = '';

  const askKubelet = (): Promise<KubeletConfig | undefined> => {
    if (configz === undefined) return Promise.resolve(undefined);
    if (asked === undefined || now() - asked.at >= CONFIGZ_FOR) {
      const answer = configz().catch((error: Error) => {
        if (error.message !== refusal) log.info({ why: error.message }, 'the kubelet is not asked, reading its files');
        refusal = error.message;
        return undefined;
      });
      asked = { at: now(), answer };
    }
    return asked.answer;
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
    const told = await askKubelet();
    if (told !== undefined) {
      say([], told);
      return { config: told, problems: [] };
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
      return `${finding.file} is a kubeconfig, not a KubeletConfiguration: passed over`;
    case 'invalid':
      return finding.error.message;
  }
}
