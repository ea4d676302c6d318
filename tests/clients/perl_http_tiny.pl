#!/usr/bin/env perl
# SPDX-License-Identifier: BSD-2-Clause
# Perl's HTTP::Tiny on one connection: perl_http_tiny.pl URL ROUNDS
use strict;
use warnings;
use HTTP::Tiny;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

my ($url, $rounds) = @ARGV;
my $http = HTTP::Tiny->new(keep_alive => 1, timeout => 10);

# Numbered lines that say whose they are, cut to size bytes.
sub value {
    my ($size, $round) = @_;
    my $text = '';
    for (my $line = 0; length $text < $size; $line++) {
        $text .= "perl-http-tiny $size $round $line\n";
    }
    return substr $text, 0, $size;
}

sub request {
    my ($method, $size, $body) = @_;
    my $start = clock_gettime(CLOCK_MONOTONIC);
    my $response = $http->request($method, "${url}perl-http-tiny-$size", defined $body ? { content => $body } : {});
    return ($response, int(1e6 * (clock_gettime(CLOCK_MONOTONIC) - $start)));
}

for my $round (0 .. $rounds) {    # round 0 is for warming up
    for my $size (307200, 100) {
        my $body = value($size, $round);
        my ($put, $put_us) = request('PUT', $size, $body);
        $put->{status} =~ /^20[14]$/ or die "round $round: put answered $put->{status} $put->{content}\n";
        my ($get, $get_us) = request('GET', $size);
        $get->{status} == 200 && $get->{content} eq $body
            or die "round $round: get answered $get->{status}, ", length $get->{content}, " bytes\n";
        print "put $size $put_us\nget $size $get_us\n" if $round > 0;
    }
}
