import * as z from 'zod';
import { CliError, EXIT } from '../support/exit-status.ts';

/** What an agent answers at /vms. Fields that a later agent may add are passed over. */
export const vmStatus = z.object({
  vms: z.array(
    z.object({
      namespace: z.string(),
      vmi: z.string(),
      podName: z.string(),
      podUID: z.string(),
      /** Null while QEMU does not run. */
      pid: z.number().nullable(),
      /** The cpuset of its container. */
      container: z.string(),
      mask: z.string().nullable(),
      /** pinned, unpinned, refused, or null where there is nothing to say. */
      state: z.string().nullable(),
      message: z.string().nullable(),
      /** CPUs of virt-handler's cgroup for the emulator, or null. */
      housekeeping: z.string().nullable(),
      problems: z.array(z.string()),
      threads: z.array(
        z.object({
          tid: z.number(),
          name: z.string(),
          role: z.string(),
          allowed: z.string(),
          /** Null for a thread that is left where it is. */
          wanted: z.string().nullable(),
        }),
      ),
    }),
  ),
  overlaps: z.array(z.object({ vms: z.tuple([z.string(), z.string()]), cpus: z.string() })),
});

export type VmStatus = z.infer<typeof vmStatus>;
export type OneVm = VmStatus['vms'][number];

/** Seconds. */
const DEADLINE = 5;

/** @throws CliError if the agent cannot be asked */
export async function fetchVmStatus(agent: string): Promise<VmStatus> {
  const url = `${agent.replace(/\/$/, '')}/vms`;
  const unreachable = (why: string, cause?: unknown) => new CliError(EXIT.unreachable, why, { cause });
  let response: Response;
  try {
    response = await fetch(url, { signal: AbortSignal.timeout(DEADLINE * 1000) });
  } catch (error) {
    const cause = (error as Error).cause instanceof Error ? ((error as Error).cause as Error) : (error as Error);
    throw unreachable(`${url}: ${cause.message}; run this on the node, or name the agent with --agent`, error);
  }
  if (response.status === 404) {
    throw unreachable(`${url}: this agent looks after no VMs (--vm-pinning off, --mode dpu, or it is too old)`);
  }
  if (!response.ok) throw unreachable(`${url} answers ${response.status}`);
  const result = vmStatus.safeParse(await response.json().catch(() => undefined));
  if (!result.success) throw unreachable(`${url} is no answer of an agent: ${result.error.issues[0]?.message}`);
  return result.data;
}

/** Whether every thread is where it should be, every mask is kept and no two VMs share CPUs. */
export function isInOrder({ vms, overlaps }: VmStatus): boolean {
  const isKept = ({ state, problems, threads }: OneVm) =>
    (state === null || state === 'pinned') &&
    problems.length === 0 &&
    threads.every(({ allowed, wanted }) => wanted === null || allowed === wanted);
  return overlaps.length === 0 && vms.every(isKept);
}
