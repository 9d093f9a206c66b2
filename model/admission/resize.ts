import { asksForAlignment, wantsWholeCores } from '../launcher/annotation.ts';
import { podResourcesOf } from '../launcher/containers.ts';
import { recognizeLauncher } from '../launcher/recognize.ts';
import type { PodShape } from '../shapes.ts';
import type { Settings } from './facts.ts';

/** The static policy cannot resize exclusive CPUs; the new amount would not be whole cores. @throws ParseError */
export function resizeRefusal(
  before: PodShape,
  after: PodShape,
  settings: Pick<Settings, 'gate' | 'policy'>,
): string | undefined {
  if (!isAligned(before, settings) || amounts(before) === amounts(after)) return undefined;
  const what =
    recognizeLauncher(before).kind === 'launcher'
      ? 'change the VM and restart or migrate it'
      : 'delete and create it again';
  return `this pod has whole cores, which cannot be resized in place: ${what}`;
}

function isAligned(pod: PodShape, { gate, policy }: Pick<Settings, 'gate' | 'policy'>): boolean {
  const launcher =
    recognizeLauncher(pod).kind === 'launcher' && gate && (policy !== 'annotated' || wantsWholeCores(pod.metadata));
  return (launcher || asksForAlignment(pod.metadata)) && podResourcesOf(pod).exclusive;
}

function amounts({ spec }: PodShape): string {
  const containers = [...spec.containers, ...(spec.initContainers ?? [])];
  return JSON.stringify(containers.map(({ name, resources }) => [name, resources?.requests, resources?.limits]));
}
