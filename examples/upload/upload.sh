#!/usr/bin/env bash
# Carries out an upload plan of `rockpack repo --upload-plan PLAN`.
#
#   upload.sh aws|rclone|gsutil PLAN REPOSITORY DESTINATION
#
# DESTINATION is BUCKET/PREFIX, or REMOTE:BUCKET/PREFIX for rclone. Uploads only packages and indexes that the store
# does not have in that size. Needs bash, jq and the named tool.
set -euo pipefail
[ $# -eq 4 ] || { sed -n '4s/^# *//p' "$0" >&2; exit 64; }
tool=$1 plan=$(realpath -e "$2") repo=$(realpath -e "$3") to=$4
export repo to

# put FILE PATH CONTENT-TYPE CACHE-CONTROL; remove PATH; list: size and path of every object.
case $tool in
aws)
    put() { aws s3 cp --only-show-errors --content-type "$3" --cache-control "$4" "$1" "s3://$to/$2"; }
    remove() { aws s3 rm --only-show-errors "s3://$to/$1"; }
    list() {
        aws s3api list-objects-v2 --bucket "${to%%/*}" --prefix "${to#*/}/" \
            --query 'Contents[].[Size, Key]' --output text | sed "s|\t${to#*/}/|\t|"
    }
    ;;
rclone)
    put() {
        rclone copyto --ignore-times --header-upload "Content-Type: $3" \
            --header-upload "Cache-Control: $4" "$1" "$to/$2"
    }
    remove() { rclone deletefile "$to/$1"; }
    list() { rclone lsf -R --files-only --format sp --separator $'\t' "$to"; }
    ;;
gsutil)
    put() { gsutil -q -h "Content-Type:$3" -h "Cache-Control:$4" cp "$1" "gs://$to/$2"; }
    remove() { gsutil -q rm "gs://$to/$1"; }
    list() {
        { gsutil ls -l "gs://$to/**" || :; } |
            awk -v to="gs://$to/" 'index($3, to) == 1 { print $1 "\t" substr($3, length(to) + 1) }'
    }
    ;;
*)
    echo "unknown tool: $tool" >&2
    exit 64
    ;;
esac
export -f put

# Size, path, content type, cache header and text of every file of a phase.
files() {
    jq -r --arg name "$1" '.phases[] | select(.name == $name).files[]
        | [.size, .path, .content_type, .cache_control, (.text // "" | @base64)] | @tsv' "$plan"
}

# The plan has to be that of the last publication.
jq -r '.phases[2].files[] | select(has("text") | not) | "\(.sha256)  \(.path)"' "$plan" |
    (cd "$repo" && sha256sum --check --quiet)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
list >listed
for phase in packages indexes; do
    # shellcheck disable=SC2016 # The inner shell expands it.
    files "$phase" |
        awk -F '\t' 'FILENAME == "listed" { there[$1, $2]; next } !(($1, $2) in there)' listed - |
        cut -f 2-4 | tr '\t' '\n' |
        xargs -r -d '\n' -n 3 -P 8 bash -c 'put "$repo/$1" "$@"' put
done
files visible | while IFS=$'\t' read -r _ path type cache text; do
    base64 -d <<<"$text" >page
    if [ "$text" ]; then file=page; else file=$repo/$path; fi
    put "$file" "$path" "$type" "$cache"
done

sleep 3600
jq -r '.phases[3].files[]' "$plan" |
    awk -F '\t' 'FILENAME == "listed" { there[$2]; next } $0 in there' listed - |
    while read -r path; do remove "$path"; done
