/** The tag of `registry:5000/kube-scheduler:v1.36.2@sha256:…`; empty if the image has no tag. */
export function tagOf(image: string): string {
  return /:([^:/@]+)(?:@.*)?$/.exec(image)?.[1] ?? '';
}
