# Ends the cluster in folder $1 when its owner does, however that ends: the owner holds the other end of our stdin.
folder=$1
data=$folder/data

# The processes that work in the folder: initdb or pg_basebackup, the server and all that it started.
workers() {
    for process in /proc/[0-9]*; do
        if [ "$process/cwd" -ef "$data" ] || [ "$process/cwd" -ef "$folder" ]; then
            echo "${process#/proc/}"
        fi
    done
}

read -r _

# A killed server leaves its file behind, and its process id may be another's by now.
server=
if [ -f "$data/postmaster.pid" ]; then read -r server <"$data/postmaster.pid"; fi
patience=0
if [ -n "$server" ] && [ "/proc/$server/cwd" -ef "$data" ]; then
    kill -QUIT "$server"
    kill -CONT "$server"
    patience=100
fi
tries=0
while
    left=$(workers)
    [ -n "$left" ] && [ "$tries" -lt 200 ]
do
    # Not quoted: one word for each process.
    if [ "$tries" -ge "$patience" ]; then kill -KILL $left; fi
    tries=$((tries + 1))
    sleep 0.05
done

# What a killed server leaves outside of its folder: the segment of System V memory that guards its data.
if [ -f "$data/postmaster.pid" ]; then
    segment=$(sed -n '7s/^ *[0-9][0-9]* *//p' "$data/postmaster.pid")
    if [ -n "$segment" ]; then ipcrm -m "$segment"; fi
fi
rm -rf "$folder"
